/**
 * The pack: what one append to an inbox stores (docs/architecture/protocol.md, "Packs"). A versioned binary frame
 * around items that keep the sender's payload bytes untouched: each holds the finished element of the delivered
 * `items[]` array, so that a batch body is a join of stored bytes.
 *
 * Invariant: an encoded item is self-contained. Its bytes [offset, end) may be copied verbatim into another
 * buffer (a `keep` record) and be read there with `readItem`.
 *
 * Layout, big-endian:
 *
 *   pack  u8 magic 0x50, u8 version 1, 12 bytes pack id, u16 length of the reply subject, the subject,
 *         u32 item count, items
 *   item  u32 length (this field included), u8 flags, 16 bytes item id, 16 bytes group token, 16 bytes
 *         buffer uid, u48 received at (Unix ms), u32 credits, u32 payload length, u16 group key length, the
 *         group key, the element
 *
 * The group key stands as JSON text: a lone surrogate survives there and would not in UTF-8. The message id
 * is read from the element.
 */
import { PACK_ID_BYTES } from './pack-id.ts'
import { readUuid, writeUuid } from './uuid.ts'

export interface PackItem {
  /** UUID. */
  itemId: string
  /** UUID, internal identity of the buffer. */
  bufferUid: string
  /** 128 bits, base64url (22 characters). */
  groupToken: string
  groupKey: string
  messageId: string
  /** The sender gave the message id. */
  explicit: boolean
  /** 0 to 2^32 - 1. */
  credits: number
  /** Unix ms. */
  receivedAt: number
  /** The sender's bytes, valid JSON in UTF-8. */
  payload: Uint8Array
}

export interface PackHeader {
  /** 12 bytes, base64url (16 characters). */
  packId: string
  /** Where verdicts on explicit ids go; null when nobody waits for any. */
  replySubject: string | null
  count: number
  firstItemOffset: number
}

/** The bytes are no pack, or no item: nothing of them can be trusted. */
export class CorruptPackError extends Error {
  override readonly name = 'CorruptPackError'
}

const MAGIC = 0x50
const FRAME_VERSION = 1
const PACK_ID_AT = 2
const PACK_HEAD = PACK_ID_AT + PACK_ID_BYTES + 2
const at = {
  flags: 4,
  itemId: 5,
  token: 21,
  uid: 37,
  receivedAt: 53,
  credits: 59,
  payload: 63,
  key: 67,
} as const
const ITEM_HEAD = 69
const EXPLICIT_FLAG = 0x01
/** Flags of the upper half change the meaning of an item: a reader that does not know one must stop. */
const MUST_UNDERSTAND = 0xf0

const QUOTE = 0x22
const BEFORE_MESSAGE_ID = '{"messageId":'
const BEFORE_RECEIVED_AT = ',"receivedAt":'
const BEFORE_PAYLOAD = ',"payload":'

/** Bytes that a pack of these items takes beyond the items themselves. */
export function packOverhead(replySubject: string | null): number {
  return PACK_HEAD + Buffer.byteLength(replySubject ?? '') + 4
}

interface Sized {
  item: PackItem
  keyText: string
  keyBytes: number
  elementHead: string
  elementBytes: number
}

function sized(item: PackItem): Sized {
  const keyText = JSON.stringify(item.groupKey)
  const id = JSON.stringify(item.messageId)
  const elementHead = `${BEFORE_MESSAGE_ID}${id}${BEFORE_RECEIVED_AT}${item.receivedAt}${BEFORE_PAYLOAD}`
  const keyBytes = Buffer.byteLength(keyText)
  if (keyBytes > 0xffff) throw new RangeError(`groupKey of ${keyBytes} bytes does not fit a pack`)
  if (!Number.isSafeInteger(item.receivedAt) || item.receivedAt < 0 || item.receivedAt >= 2 ** 48) {
    throw new RangeError(`receivedAt ${item.receivedAt} is no Unix time in ms`)
  }
  return {
    item,
    keyText,
    keyBytes,
    elementHead,
    elementBytes: Buffer.byteLength(elementHead) + item.payload.length + 1,
  }
}

function writeItem(frame: Buffer, offset: number, entry: Sized): number {
  const { item } = entry
  const length = ITEM_HEAD + entry.keyBytes + entry.elementBytes
  frame.writeUInt32BE(length, offset)
  frame[offset + at.flags] = item.explicit ? EXPLICIT_FLAG : 0
  writeUuid(frame, offset + at.itemId, item.itemId)
  if (frame.write(item.groupToken, offset + at.token, 16, 'base64url') !== 16) {
    throw new RangeError(`groupToken ${JSON.stringify(item.groupToken)} is not 128 bits`)
  }
  frame.writeUIntBE(item.receivedAt, offset + at.receivedAt, 6)
  frame.writeUInt32BE(item.credits, offset + at.credits)
  frame.writeUInt32BE(item.payload.length, offset + at.payload)
  frame.writeUInt16BE(entry.keyBytes, offset + at.key)
  let cursor = offset + ITEM_HEAD
  cursor += frame.write(entry.keyText, cursor)
  cursor += frame.write(entry.elementHead, cursor)
  frame.set(item.payload, cursor)
  frame[cursor + item.payload.length] = 0x7d
  return offset + length
}

/** One allocation for the whole frame. Throws RangeError for a field outside its range. */
export function encodePack(
  packId: Uint8Array,
  replySubject: string | null,
  items: readonly PackItem[],
): Buffer {
  if (packId.length !== PACK_ID_BYTES) throw new RangeError(`a pack id has ${PACK_ID_BYTES} bytes`)
  const entries = items.map(sized)
  let size = packOverhead(replySubject)
  for (const entry of entries) size += ITEM_HEAD + entry.keyBytes + entry.elementBytes
  const frame = Buffer.allocUnsafe(size)
  frame[0] = MAGIC
  frame[1] = FRAME_VERSION
  frame.set(packId, PACK_ID_AT)
  const reply = replySubject ?? ''
  const replyBytes = frame.write(reply, PACK_HEAD)
  frame.writeUInt16BE(replyBytes, PACK_HEAD - 2)
  frame.writeUInt32BE(entries.length, PACK_HEAD + replyBytes)
  let cursor = PACK_HEAD + replyBytes + 4
  let uid = ''
  let uidAt = 0
  for (const entry of entries) {
    const target = cursor + at.uid
    // Items of one buffer come together: its uid is written once, and copied.
    if (entry.item.bufferUid === uid) frame.copyWithin(target, uidAt, uidAt + 16)
    else writeUuid(frame, target, entry.item.bufferUid)
    uid = entry.item.bufferUid
    uidAt = target
    cursor = writeItem(frame, cursor, entry)
  }
  return frame
}

/** A copy of the pack under another id. */
export function withPackId(bytes: Uint8Array, packId: Uint8Array): Buffer {
  const frame = Buffer.from(bytes)
  frame.set(packId, PACK_ID_AT)
  return frame
}

/** Upper bound of the bytes that `item` takes in a pack, without encoding it; for filling packs. */
export function itemSizeBound(item: { groupKey: string; messageId: string; payload: Uint8Array }): number {
  // A UTF-16 unit takes at most 6 bytes as JSON text (\uXXXX); 15 digits of a time, 4 quotes and a brace.
  const fixed = ITEM_HEAD + BEFORE_MESSAGE_ID.length + BEFORE_RECEIVED_AT.length + BEFORE_PAYLOAD.length + 20
  return fixed + 6 * (item.groupKey.length + item.messageId.length) + item.payload.length
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** Throws CorruptPackError. */
export function readPackHeader(bytes: Uint8Array): PackHeader {
  const frame = asBuffer(bytes)
  if (frame.length < PACK_HEAD + 4)
    throw new CorruptPackError(`a pack of ${frame.length} bytes has no header`)
  if (frame[0] !== MAGIC) throw new CorruptPackError(`not a pack: it begins with byte ${frame[0]}`)
  if (frame[1] !== FRAME_VERSION) throw new CorruptPackError(`pack version ${frame[1]} is not known`)
  const replyBytes = frame.readUInt16BE(PACK_HEAD - 2)
  const firstItemOffset = PACK_HEAD + replyBytes + 4
  if (firstItemOffset > frame.length)
    throw new CorruptPackError('the reply subject passes the end of the pack')
  return {
    packId: frame.toString('base64url', PACK_ID_AT, PACK_ID_AT + PACK_ID_BYTES),
    replySubject: replyBytes === 0 ? null : frame.toString('utf8', PACK_HEAD, PACK_HEAD + replyBytes),
    count: frame.readUInt32BE(PACK_HEAD + replyBytes),
    firstItemOffset,
  }
}

/**
 * One item where it lies. Numbers are read at once, texts when asked for. It holds the whole frame: keep
 * offsets, not views.
 */
export class ItemView {
  /** [offset, end) is the encoded item; `end` is where the next one begins. */
  readonly offset: number
  readonly end: number
  readonly explicit: boolean
  readonly receivedAt: number
  readonly credits: number
  /** [elementOffset, elementOffset + elementLength) is the element of `items[]`, ready for a body. */
  readonly elementOffset: number
  readonly elementLength: number
  readonly payloadBytes: number
  readonly #frame: Buffer

  constructor(frame: Buffer, offset: number, end: number) {
    this.#frame = frame
    this.offset = offset
    this.end = end
    this.explicit = ((frame[offset + at.flags] ?? 0) & EXPLICIT_FLAG) !== 0
    this.receivedAt = frame.readUIntBE(offset + at.receivedAt, 6)
    this.credits = frame.readUInt32BE(offset + at.credits)
    this.payloadBytes = frame.readUInt32BE(offset + at.payload)
    this.elementOffset = offset + ITEM_HEAD + frame.readUInt16BE(offset + at.key)
    this.elementLength = end - this.elementOffset
  }

  get itemId(): string {
    return readUuid(this.#frame, this.offset + at.itemId)
  }

  get bufferUid(): string {
    return readUuid(this.#frame, this.offset + at.uid)
  }

  get groupToken(): string {
    return this.#frame.toString('base64url', this.offset + at.token, this.offset + at.token + 16)
  }

  get groupKey(): string {
    return textOf(this.#frame, this.offset + ITEM_HEAD, this.elementOffset)
  }

  get messageId(): string {
    const from = this.elementOffset + BEFORE_MESSAGE_ID.length
    const tail =
      BEFORE_RECEIVED_AT.length +
      String(this.receivedAt).length +
      BEFORE_PAYLOAD.length +
      this.payloadBytes +
      1
    return textOf(this.#frame, from, this.end - tail)
  }

  /** Where the sender's bytes begin. */
  get payloadOffset(): number {
    return this.end - 1 - this.payloadBytes
  }
}

function textOf(frame: Buffer, from: number, to: number): string {
  if (to - from >= 2 && frame[from] === QUOTE && frame[to - 1] === QUOTE) {
    // Most texts have nothing to unescape.
    const plain = frame.toString('utf8', from + 1, to - 1)
    if (!plain.includes('\\') && !plain.includes('"')) return plain
  }
  try {
    const text: unknown = JSON.parse(frame.toString('utf8', from, to))
    if (typeof text === 'string') return text
  } catch (cause) {
    throw new CorruptPackError(`no text at bytes ${from} to ${to}`, { cause })
  }
  throw new CorruptPackError(`no text at bytes ${from} to ${to}`)
}

/** The item that begins at `offset`. Throws CorruptPackError when its bounds do not hold. */
export function readItem(bytes: Uint8Array, offset: number): ItemView {
  const frame = asBuffer(bytes)
  if (offset < 0 || offset + ITEM_HEAD > frame.length) throw new CorruptPackError(`no item at byte ${offset}`)
  const end = offset + frame.readUInt32BE(offset)
  if (end > frame.length) throw new CorruptPackError(`the item at byte ${offset} passes the end`)
  const flags = frame[offset + at.flags] ?? 0
  if ((flags & MUST_UNDERSTAND) !== 0)
    throw new CorruptPackError(`the item at byte ${offset} has flags ${flags}`)
  const least = ITEM_HEAD + frame.readUInt16BE(offset + at.key) + frame.readUInt32BE(offset + at.payload)
  const shell = BEFORE_MESSAGE_ID.length + 2 + BEFORE_RECEIVED_AT.length + 1 + BEFORE_PAYLOAD.length + 1
  if (end - offset < least + shell) throw new CorruptPackError(`the item at byte ${offset} is too short`)
  return new ItemView(frame, offset, end)
}

/** As `readItems`, with the header. */
export function decodePack(bytes: Uint8Array, visit: (item: ItemView, index: number) => void): PackHeader {
  const header = readPackHeader(bytes)
  readItems(bytes, header, visit)
  return header
}

/** Calls `visit` for each item in order. Throws CorruptPackError, possibly after some items were visited. */
export function readItems(
  bytes: Uint8Array,
  header: PackHeader,
  visit: (item: ItemView, index: number) => void,
): void {
  const frame = asBuffer(bytes)
  let offset = header.firstItemOffset
  for (let index = 0; index < header.count; index++) {
    const item = readItem(frame, offset)
    visit(item, index)
    offset = item.end
  }
  if (offset !== frame.length)
    throw new CorruptPackError(`${frame.length - offset} bytes follow the last item`)
}
