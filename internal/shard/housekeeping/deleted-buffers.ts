/**
 * Says in Postgres which deleted buffers the shard has let go of, so that their rows can be removed
 * (docs/architecture/protocol.md, "Deleted buffers"). A row is needed as long as an item of its buffer is live
 * anywhere: it says where to deliver, or that what the buffer holds is to be discarded.
 *
 * Invariant: a buffer is reported as let go only when its deletion was long enough ago that nothing of it is
 * appended any more, the shard has read everything that was appended until after that moment, and what ended
 * its last items is committed. Then nothing of it is live here again, whoever owns the shard.
 */

import { Rounds } from '../../runtime/rounds.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { BatchesOwner } from '../batches/owner.ts'
import { JournalClosedError } from '../journal/journal.ts'
import type { ShardOptions } from '../options.ts'
import { type DeletedBuffers, FencedError } from '../ports.ts'
import type { HousekeepingOwner } from './owner.ts'

type Shared = 'clock' | 'onProblem' | 'fence' | 'raised' | 'replay' | 'groups' | 'journal'

export type DeletedBufferReportsOptions = Pick<ShardOptions, 'deletedBuffers'> &
  Pick<BatchesOwner, Shared> &
  Pick<HousekeepingOwner, 'inboxLog'>

const READ_POLL_MS = 100
/** How long the reader may need to come to the end of the inbox; past it the next round tries again. */
const READ_WAIT_MS = 10_000

export class DeletedBufferReports {
  readonly #options: DeletedBufferReportsOptions
  readonly #rounds: Rounds | undefined

  constructor(options: DeletedBufferReportsOptions) {
    this.#options = options
    const { deletedBuffers, clock, onProblem } = options
    if (!deletedBuffers) return
    this.#rounds = new Rounds({
      clock,
      everyMs: deletedBuffers.everyMs,
      round: (stopped) => this.#round(deletedBuffers, stopped),
      onProblem: (error) => {
        const isOver = error instanceof FencedError || error instanceof JournalClosedError
        if (!isOver) onProblem('deleted buffers cannot be reported', error)
      },
    })
    this.#rounds.startLater()
  }

  stop(): void {
    void this.#rounds?.stop()
  }

  async #round(deletedBuffers: DeletedBuffers, stopped: () => boolean): Promise<void> {
    const { raised, fence } = this.#options
    await raised
    await this.#report(deletedBuffers, stopped)
    // One shard for all: it comes back to what a crash left between a report and the removal.
    if (fence.shard === 0 && !stopped()) await deletedBuffers.remove()
  }

  async #report(deletedBuffers: DeletedBuffers, stopped: () => boolean): Promise<void> {
    const { fence, inboxLog, replay, journal } = this.#options
    const { before, uids } = await deletedBuffers.pending(fence.shard)
    if (uids.length === 0 || stopped()) return
    // Asked after `before` was fixed: whatever was appended until then stands up to here.
    const { lastSeq } = await inboxLog.state()
    if (!(await this.#readPast(lastSeq, stopped))) return
    const position = replay.cursor - 1
    const held = this.#heldOf(new Set(uids))
    // A group may close before the record that ended its items is committed: all that was written until now.
    await journal.flush()
    if (!stopped()) await deletedBuffers.report(fence, { before, position, held })
  }

  /** Every live item belongs to an open group, and every open group to a buffer state. */
  #heldOf(uids: ReadonlySet<string>): string[] {
    return [...this.#options.groups.buffers()].flatMap(({ uid }) => (uids.has(uid) ? [uid] : []))
  }

  async #readPast(seq: number, stopped: () => boolean): Promise<boolean> {
    const { clock, replay } = this.#options
    const deadline = clock.monotonic() + READ_WAIT_MS
    for (;;) {
      if (stopped()) return false
      if (!replay.replaying && replay.cursor > seq) return true
      if (clock.monotonic() >= deadline) return false
      await sleep(clock, READ_POLL_MS)
    }
  }
}
