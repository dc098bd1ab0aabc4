import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { Log } from '../broker.ts'

const APPEND_TIMEOUT_MS = 2_000
const RETRY_PAUSE_MS = 50

/**
 * Stores a commit of somebody who is no owner at `seq`, behind the last one, and repeats it until the broker answers. false: somebody
 * else wrote there. Rejects when the journal is full.
 */
export async function appendBehind(
  journal: Log,
  clock: Clock,
  data: Uint8Array,
  { msgId, seq }: { msgId: string; seq: number },
): Promise<boolean> {
  for (;;) {
    const answer = await journal.append(data, { msgId, expectLastSeq: seq - 1, timeoutMs: APPEND_TIMEOUT_MS })
    if (answer.kind === 'stored' && answer.seq === seq) return true
    if (answer.kind === 'full') throw new Error('the journal has no room: raise the max_bytes of its stream')
    if (answer.kind === 'stored' || answer.kind === 'wrong-sequence') {
      const last = await journal.last()
      return last?.seq === seq && last.msgId === msgId
    }
    await sleep(clock, RETRY_PAUSE_MS)
  }
}
