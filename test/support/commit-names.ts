import type { CommitName } from '../../internal/shard/journal/commit-name.ts'

/** The commit at this sequence, whichever it is. */
export function commitAt(seq: number): CommitName {
  return { seq, identity: null }
}
