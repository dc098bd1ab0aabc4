/**
 * Subjects in an archive: `snapshot.<seq>.<identity>.<part>` for the parts of a snapshot, `snapshot.<seq>.<identity>.end` for what
 * makes it complete, `probe`. The name is that of the commit after which the snapshot stands.
 */
import type { CommitName } from '../journal/commit-name.ts'

export const PROBE = 'probe'
/** All that belongs to snapshots. */
export const SNAPSHOTS = 'snapshot.>'

const END = 'end'
const SUBJECT = /^snapshot\.(\d+)\.([0-9a-f]+)\.(\d+|end)$/

/** A snapshot in an archive; without its end it does not count, but its writer saw the commit that it names. */
export interface StoredSnapshot {
  readonly name: CommitName
  readonly hasEnd: boolean
}

export function partSubject({ seq, identity }: CommitName, part: number): string {
  return `snapshot.${seq}.${identity}.${part}`
}

export function endSubject({ seq, identity }: CommitName): string {
  return `snapshot.${seq}.${identity}.${END}`
}

/** Everything of one snapshot. */
export function filterOf({ seq, identity }: CommitName): string {
  return `snapshot.${seq}.${identity}.>`
}

/** The snapshots of which these subjects hold something, newest first. Other subjects are passed over. */
export function snapshotsOf(subjects: readonly string[]): StoredSnapshot[] {
  const found = new Map<string, { name: CommitName; hasEnd: boolean }>()
  for (const subject of subjects) {
    const [, seq, identity, part] = SUBJECT.exec(subject) ?? []
    if (seq === undefined || identity === undefined) continue
    const key = `${seq}.${identity}`
    const snapshot = found.get(key) ?? { name: { seq: Number(seq), identity }, hasEnd: false }
    if (part === END) snapshot.hasEnd = true
    found.set(key, snapshot)
  }
  return [...found.values()].sort((a, b) => b.name.seq - a.name.seq)
}
