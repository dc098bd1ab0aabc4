/**
 * Whether the journal still has what its owner wrote (docs/architecture/protocol.md, "Lost tail"). A successor appends behind
 * the last commit of its predecessor. Where that commit is gone, or another one stands in its place, the broker lost it.
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

/** Rejects with LostTailError when the commit is not there, and is not purged. */
export async function checkJournalTail(log: Log, tail: OwnTail): Promise<void> {
  checkEnd((await log.state()).lastSeq, tail)
  await checkOwnCommit(log, tail)
}

/** Throws LostTailError when a journal that ends at `end` ends before the commit. */
export function checkEnd(end: number, { shard, lastSeq }: OwnTail): void {
  if (end < lastSeq) throw lostMessages(shard, `the journal ends at ${end}, its owner wrote ${lastSeq}`)
}

/** Rejects with LostTailError when another commit stands in its place. */
export async function checkOwnCommit(log: Log, { shard, boot, epoch, lastSeq }: OwnTail): Promise<void> {
  const message = await log.get(lastSeq)
  if (message === undefined) return
  const found = decodeCommit(message.data)
  // A claim does not know its own epoch yet.
  if (found.boot === boot && (found.epoch === epoch || lastSeq === epoch)) return
  throw lostMessages(shard, `another has written where its owner wrote ${lastSeq}, in the journal`)
}
