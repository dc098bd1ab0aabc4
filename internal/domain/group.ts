/** Names of groups, shards and batches (docs/architecture/protocol.md, "Groups and shards"). */
import { hash } from 'node:crypto'
import { writeUuid } from './uuid.ts'

/** 128 bits are 21 digits of base64url and the upper 2 bits of one more. */
const WHOLE_DIGITS = 21
const LAST_DIGIT_MASK = 0x30
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const UID_BYTES = 16

/**
 * Name of a group over all buffers, also its `groupId` and `groupHash`: the first 128 bits of SHA-256 over the
 * 16 bytes of the buffer's uid and the key in UTF-8, in 22 characters of base64url. Throws RangeError on a uid
 * that is no UUID.
 */
export function groupToken(uid: string, groupKey: string): string {
  const bytes = Buffer.allocUnsafe(UID_BYTES + Buffer.byteLength(groupKey))
  writeUuid(bytes, 0, uid)
  bytes.write(groupKey, UID_BYTES)
  return token(bytes)
}

/** Name of a buffer in broker subjects, 22 characters of base64url. */
export function bufferToken(uid: string): string {
  const bytes = Buffer.allocUnsafe(UID_BYTES)
  writeUuid(bytes, 0, uid)
  return token(bytes)
}

/** The shard, 0 to `shards` - 1, of a group. Fixed by the group's hash for as long as `shards` is. */
export function shardOf(groupToken: string, shards: number): number {
  return Buffer.from(groupToken, 'base64url').readUInt32BE(0) % shards
}

/** Value of the idempotency header of a batch (docs/reference/buffers.md, "Deliveries"). */
export function idempotencyKey(groupId: string, version: number): string {
  return `grp:${groupId}:v${version}`
}

/** Cut from the text of the whole hash: less than half the time of its bytes on their way to a text. */
function token(bytes: Uint8Array): string {
  const text = hash('sha256', bytes, 'base64url')
  const last = BASE64URL.indexOf(text[WHOLE_DIGITS]!)
  return text.slice(0, WHOLE_DIGITS) + BASE64URL[last & LAST_DIGIT_MASK]!
}
