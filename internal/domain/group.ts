/** Names of groups, shards and batches (docs/architecture/protocol.md, "Groups and shards"). */
import { hash } from 'node:crypto'
import { writeUuid } from './uuid.ts'

/** 128 bits are 21 digits of base64url and the upper 2 bits of one more. */
const wholeDigits = 21
const lastDigitMask = 0x30
const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const uidBytes = 16

/**
 * Name of a group over all buffers, also its `groupId` and `groupHash`: the first 128 bits of SHA-256 over the
 * 16 bytes of the buffer's uid and the key in UTF-8, in 22 characters of base64url. Throws RangeError on a uid
 * that is no UUID.
 */
export function groupToken(uid: string, groupKey: string): string {
  const bytes = Buffer.allocUnsafe(uidBytes + Buffer.byteLength(groupKey))
  writeUuid(bytes, 0, uid)
  bytes.write(groupKey, uidBytes)
  return token(bytes)
}

/** Name of a buffer in broker subjects, 22 characters of base64url. */
export function bufferToken(uid: string): string {
  const bytes = Buffer.allocUnsafe(uidBytes)
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
  const last = base64url.indexOf(text[wholeDigits]!)
  return text.slice(0, wholeDigits) + base64url[last & lastDigitMask]!
}
