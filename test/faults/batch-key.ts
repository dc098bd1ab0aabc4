/** Idempotency keys as destinations see them: `grp:<groupId>:v<version>` (docs/reference/buffers.md, "Deliveries"). */
import { shardOf } from '../../internal/domain/group.ts'

export interface BatchKey {
  readonly groupId: string
  readonly version: number
}

/** null: it is no such key. */
export function readKey(key: string): BatchKey | null {
  const [, groupId, version] = /^grp:([\w-]{22}):v([1-9]\d*)$/.exec(key) ?? []
  return groupId === undefined ? null : { groupId, version: Number(version) }
}

/** The part of a key that grows; NaN when it is no such key. */
export function versionOf({ key }: { readonly key: string }): number {
  return readKey(key)?.version ?? Number.NaN
}

/** undefined: it is no such key. */
export function shardOfKey(key: string, shards: number): number | undefined {
  const read = readKey(key)
  return read ? shardOf(read.groupId, shards) : undefined
}
