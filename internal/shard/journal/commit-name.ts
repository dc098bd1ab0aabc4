/**
 * Names of commits. After a loss another commit may stand at the same sequence, so a name outside of the journal tells which one
 * is meant.
 */
import { hash } from 'node:crypto'

export interface CommitName {
  readonly seq: number
  /** Hex of the first 16 bytes of SHA-256 over the sequence, 8 bytes big-endian, and the commit's bytes; null: not known. */
  readonly identity: string | null
}

export const NO_COMMIT: CommitName = { seq: 0, identity: null }

export function commitName(seq: number, data: Uint8Array): CommitName {
  const at = Buffer.alloc(8)
  at.writeBigUInt64BE(BigInt(seq))
  return { seq, identity: hash('sha256', Buffer.concat([at, data]), 'hex').slice(0, 32) }
}

export function isSameCommit(a: CommitName, b: CommitName): boolean {
  return a.seq === b.seq && a.identity === b.identity
}
