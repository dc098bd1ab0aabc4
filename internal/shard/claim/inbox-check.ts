/**
 * A loss of an inbox is concluded only from an answer that is proven fresh, by an owner whose claim is proven after that answer
 * (docs/architecture/protocol.md, "Lost tail"). A server that is cut off from its peers answers with what it had, and a stale owner
 * sees the purges of its successor.
 */
import { encodePack } from '../../domain/pack.ts'
import { PACK_ID_BYTES } from '../../domain/pack-id.ts'
import type { Clock, Randomness } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { Log } from '../broker.ts'
import type { Journal } from '../journal/journal.ts'
import { messageAt } from '../message-at.ts'
import type { InboxAnswers } from './takeover.ts'

const APPEND_TIMEOUT_MS = 2_000
const RETRY_PAUSE_MS = 50

export interface Asking {
  readonly inbox: Log
  readonly journal: Pick<Journal, 'prove'>
  readonly clock: Clock
  readonly randomness: Pick<Randomness, 'bytes'>
  /** Nobody waits for the answer any more. */
  readonly stopped: () => boolean
}

/**
 * What `check` makes of the inbox. Where it rejects, the inbox is asked again behind a probe, by fresh answers alone, and what it
 * rejects with then holds, behind a proof. `check` may ask for what was read before this call. Rejects, too, where answers stay behind
 * the probe: a power cut may have taken it, so another call sends another one.
 */
export async function sureOfInbox<T>(asking: Asking, check: (inbox: InboxAnswers) => Promise<T>): Promise<T> {
  const { inbox, journal, clock, randomness, stopped } = asking
  const packId = Buffer.from(randomness.bytes(PACK_ID_BYTES))
  for (;;) {
    const found = await check(inbox).then(
      (value) => ({ value }),
      () => null,
    )
    if (found) return found.value
    if (stopped()) throw new Error('stopped before the inbox was seen')
    // A full inbox takes none, and must not keep an owner from making room.
    const answer = await inbox.append(...probe(packId))
    if (answer.kind === 'stored')
      return check(asNewAs(inbox, answer.seq)).catch(async (error: unknown) => {
        await journal.prove()
        throw error
      })
    await sleep(clock, RETRY_PAUSE_MS)
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
}: Omit<Asking, 'journal'>): Promise<number | null> {
  const packId = Buffer.from(randomness.bytes(PACK_ID_BYTES))
  while (!stopped()) {
    const answer = await inbox.append(...probe(packId))
    if (answer.kind === 'stored') return answer.seq
    if (answer.kind === 'full') return null
    await sleep(clock, RETRY_PAUSE_MS)
  }
  return null
}

/** A pack without items: readers pass over it. */
function probe(packId: Buffer): Parameters<Log['append']> {
  const msgId = packId.toString('base64url')
  return [encodePack(packId, null, []), { msgId, timeoutMs: APPEND_TIMEOUT_MS }]
}

function asNewAs(inbox: Log, seq: number): InboxAnswers {
  return {
    get: (at) => messageAt(inbox, at, Math.max(at, seq)),
    state: async () => {
      const state = await inbox.state()
      if (state.lastSeq < seq)
        throw new Error(`a server that was behind answered that the inbox ends at ${state.lastSeq}`)
      return state
    },
  }
}
