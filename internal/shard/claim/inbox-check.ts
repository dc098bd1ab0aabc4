/**
 * Whether an inbox still has what its owners saw (docs/architecture/protocol.md, "Lost tail").
 *
 * Invariant: a loss is concluded only from what no server that is behind can answer, and a proof of the claim follows. A server that is
 * cut off from its peers has nothing new and still has what was purged, and a stale owner sees the purges of its successor.
 */
import { encodePack, readPackHeader } from '../../domain/pack.ts'
import { PACK_ID_BYTES } from '../../domain/pack-id.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { Log, LogMessage, LogState } from '../broker.ts'
import type { Journal } from '../journal/journal.ts'
import type { HighWater } from '../journal/records.ts'
import { Refusals } from '../journal/refusals.ts'
import { type FoldState, highestNamed } from '../journal/state.ts'
import { lostMessages } from '../lost-tail.ts'
import { messageAt } from '../message-at.ts'
import type { ShardOptions } from '../options.ts'

const APPEND_TIMEOUT_MS = 2_000
const RETRY_PAUSE_MS = 50

export interface InboxCheck extends Pick<ShardOptions, 'shard' | 'clock' | 'randomness'> {
  readonly inbox: Log
  readonly journal: Pick<Journal, 'prove'>
  /** Nobody waits for the answer any more. */
  readonly stopped: () => boolean
  /** The inbox takes no probe, and is asked again; told after 5 s and every 30 s. */
  readonly onRefused: (error: Error) => void
}

/**
 * The inbox as it is. Rejects with LostTailError when it begins above a message that may hold an item which is not over, ends before a
 * position that the journal names, or has not the message that an owner saw at `mark`. All else follows from the one answer that it
 * gives: at a claim the replay ends where it says, and must have passed each item that the journal names. What a server answers that is
 * behind looks like a lost end: a probe tells them apart. Rejects, too, where an answer stays behind the probe: a power cut may have
 * taken it, so another call sends another one.
 */
export async function checkInbox(
  check: InboxCheck,
  state: FoldState,
  mark: HighWater | null = state.highWater,
): Promise<LogState> {
  const { inbox, shard, journal, clock, stopped, onRefused } = check
  const refusals = new Refusals(clock, onRefused, 'the inbox takes no probe')
  let probe: number | null = null
  for (;;) {
    const head = await inbox.state()
    if (probe !== null && head.lastSeq < probe)
      throw new Error(`a server that was behind answered that the inbox ends at ${head.lastSeq}`)
    const named = Math.max(highestNamed(state), mark?.seq ?? 0)
    const isLong = head.lastSeq >= named
    probe = isLong ? null : await probeInbox(check)
    const fault = isLong ? await faultOf(inbox, head, state, mark) : shortOf(probe, named)
    if (fault !== null) {
      await journal.prove()
      throw lostMessages(shard, fault)
    }
    if (isLong) return head
    if (stopped()) throw new Error('stopped before the inbox was seen')
    if (probe !== null) continue
    // One that is full. It may be a server that is behind.
    refusals.again({ kind: 'full' })
    await sleep(clock, RETRY_PAUSE_MS)
  }
}

/** `probe`: all that the inbox holds stands below it. */
function shortOf(probe: number | null, named: number): string | null {
  return probe !== null && probe <= named ? `the inbox ends at ${probe - 1}, an owner saw ${named}` : null
}

/** Of an inbox that does not end before `mark`. `state` is read behind the answers. */
async function faultOf(
  inbox: Log,
  head: LogState,
  state: FoldState,
  mark: HighWater | null,
): Promise<string | null> {
  const first = lostBelow(head, state)
  if (first !== null) return `the inbox begins at ${first}, and what stood below was not over`
  if (mark === null || mark.seq < head.firstSeq) return null
  // Each claim asks this, and a range takes a consumer of the broker.
  const message = (await inbox.get(mark.seq)) ?? (await messageAt(inbox, mark.seq))
  const isThere = message ? packIdOf(message) === mark.packId : mark.seq < state.horizon
  return isThere ? null : `the inbox has another message, or none, at ${mark.seq}, where an owner saw one`
}

/**
 * The first message of an inbox that was purged, or made anew, beyond what its journal says is over: what stood below it is lost.
 * null: nothing is. Owners purge only what is below a horizon that is stored.
 */
export function lostBelow({ firstSeq, origin = firstSeq }: LogState, state: FoldState): number | null {
  const { horizon, highWater } = state
  const needed = horizon > 0 ? horizon : Math.min(origin, highWater?.seq ?? origin)
  return firstSeq > needed ? firstSeq : null
}

/** undefined: it is no pack. */
export function packIdOf({ data }: LogMessage): string | undefined {
  try {
    return readPackHeader(data).packId
  } catch {
    return undefined
  }
}

/**
 * The sequence of a probe: all that the inbox holds stands below it. null: none is stored, for the inbox is full, or nobody waits any
 * more.
 */
export async function probeInbox({
  inbox,
  clock,
  randomness,
  stopped,
}: Pick<InboxCheck, 'inbox' | 'clock' | 'randomness' | 'stopped'>): Promise<number | null> {
  const packId = Buffer.from(randomness.bytes(PACK_ID_BYTES))
  // A pack without items: readers pass over it.
  const pack = encodePack(packId, null, [])
  while (!stopped()) {
    const message = { msgId: packId.toString('base64url'), timeoutMs: APPEND_TIMEOUT_MS }
    const answer = await inbox.append(pack, message)
    if (answer.kind === 'stored') return answer.seq
    if (answer.kind === 'full') return null
    await sleep(clock, RETRY_PAUSE_MS)
  }
  return null
}
