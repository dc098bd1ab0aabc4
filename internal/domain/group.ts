/** Names of groups, shards and batches (design, sections 3 and 9). */
import { hash } from 'node:crypto'
import { writeUuid } from './uuid.ts'

/** Bytes of a token: 128 bits of SHA-256. */
const tokenBytes = 16

/**
 * Name of a group over all buffers, also its `groupId` and `groupHash`: the first 128 bits of SHA-256 over the
 * 16 bytes of the buffer's uid and the key in UTF-8, in 22 characters of base64url. Throws RangeError on a uid
 * that is no UUID.
 */
export function groupToken(uid: string, groupKey: string): string {
  return token(Buffer.concat([uidBytes(uid), Buffer.from(groupKey)]))
}

/** Name of a buffer in broker subjects, 22 characters of base64url. */
export function bufferToken(uid: string): string {
  return token(uidBytes(uid))
}

/** The shard, 0 to `shards` - 1, of a group. Fixed by the group's hash for as long as `shards` is. */
export function shardOf(groupToken: string, shards: number): number {
  return Buffer.from(groupToken, 'base64url').readUInt32BE(0) % shards
}

/** Value of the idempotency header of a batch (specification, "Events"). */
export function idempotencyKey(groupId: string, version: number): string {
  return `grp:${groupId}:v${version}`
}

function token(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'buffer').subarray(0, tokenBytes).toString('base64url')
}

function uidBytes(uid: string): Uint8Array {
  const bytes = new Uint8Array(16)
  writeUuid(bytes, 0, uid)
  return bytes
}
