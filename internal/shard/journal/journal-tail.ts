/**
 * Whether the journal still has what its owner wrote (docs/architecture/protocol.md, "Lost tail"). A successor appends behind
 * the last commit of its predecessor. Where that commit is gone, or another one stands in its place, the broker lost it. A
 * server that is cut off from its peers answers with what it had, as if it were the leader, so its answers prove no loss.
 */
import type { Log } from '../broker.ts'
import { lostMessages } from '../lost-tail.ts'
import { decodeCommit } from './codec.ts'

/** The last commit of an owner; its claim, when it has committed nothing yet. */
export interface OwnTail {
  readonly shard: number
  readonly boot: string
  readonly epoch: number
  readonly lastSeq: number
}

/** Rejects with LostTailError when another commit stands in its place, and otherwise when a server was behind. A purged one is no loss. */
export async function checkOwnCommit(log: Log, { shard, boot, epoch, lastSeq }: OwnTail): Promise<void> {
  const message = await log.get(lastSeq)
  if (message === undefined) {
    if ((await log.state()).firstSeq > lastSeq) return
    throw new Error(`a server that was behind does not have ${lastSeq} of the journal`)
  }
  const found = decodeCommit(message.data)
  // A claim does not know its own epoch yet.
  if (found.boot === boot && (found.epoch === epoch || lastSeq === epoch)) return
  throw lostMessages(shard, `another has written where its owner wrote ${lastSeq}, in the journal`)
}

/**
 * The journal seems to end before the last own commit. Claims once more: the broker stores a claim behind all that it has. Rejects
 * with LostTailError when the commit is gone, and otherwise because a server was behind.
 */
export async function checkByClaim(
  log: Log,
  tail: OwnTail,
  claimAgain: () => Promise<number>,
): Promise<never> {
  const { shard, lastSeq } = tail
  const claim = await claimAgain()
  if (claim <= lastSeq)
    throw lostMessages(shard, `the journal ends at ${claim - 1}, its owner wrote ${lastSeq}`)
  await checkOwnCommit(log, tail)
  throw new Error('a server that was behind answered for the journal')
}
