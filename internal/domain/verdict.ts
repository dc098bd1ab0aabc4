/**
 * What an ingress and the owner of a shard tell each other about explicit message ids (docs/architecture/protocol.md,
 * "Duplicates and verdicts"): the owner's verdict on a pack, and the ingress's questions when none came. JSON,
 * because one message covers a whole pack. Decoders return undefined for bytes that are none of these: they come over
 * core NATS, and a lost or foreign message only means that somebody asks again.
 *
 * Invariant: an owner says `new` or `duplicate` only after the commit that makes it so. What it does not
 * know (a position not read yet, or a drop longer than 60 s ago) is `unknown`.
 */

/** On a pack with a reply subject: the explicit items not named are new. */
export interface Verdict {
  /** base64url, as in the pack. */
  packId: string
  duplicates: readonly Duplicate[]
}

export interface Duplicate {
  /** Index of the item in its pack. */
  index: number
  /** itemId of the buffered original. */
  of: string
}

/** `id` comes back in the answer. */
export type Ask =
  /** What became of these explicit items of the pack stored at `seq`? */
  | { kind: 'position'; id: number; seq: number; items: readonly { index: number; itemId: string }[] }
  /** Is an item with this message id buffered in this group? */
  | { kind: 'original'; id: number; groupToken: string; messageId: string }

/** What became of an item. `of`: itemId of the original. */
export type Fate = { kind: 'new' } | { kind: 'duplicate'; of: string } | { kind: 'unknown' }

export type Answer =
  /** In the order of the question's items. */
  | { kind: 'position'; id: number; fates: readonly Fate[] }
  /** null: no such item is buffered. */
  | { kind: 'original'; id: number; itemId: string | null }

/** How long an owner keeps a drop distinguishable, and an ingress keeps asking, ms. */
export const DROP_MEMORY_MS = 60_000

/** Where the owner of a shard answers questions; each carries a reply subject. */
export function askSubject(shard: number): string {
  return `shard.${shard}.ask`
}

export function encodeVerdict(verdict: Verdict): Buffer {
  const duplicates = verdict.duplicates.map(({ index, of }) => [index, of])
  return Buffer.from(JSON.stringify({ pack: verdict.packId, duplicates }))
}

export function decodeVerdict(bytes: Uint8Array): Verdict | undefined {
  const message = fieldsOf(bytes)
  if (typeof message?.pack !== 'string' || !Array.isArray(message.duplicates)) return undefined
  const duplicates = all(message.duplicates, pairOf)
  return duplicates && { packId: message.pack, duplicates: duplicates.map(([index, of]) => ({ index, of })) }
}

/** The kind `original` as nodes write it to each other: those of earlier versions know no other word. */
const ORIGINAL_TEXT = 'twin'

export function encodeAsk(ask: Ask): Buffer {
  if (ask.kind === 'original') return Buffer.from(JSON.stringify({ ...ask, kind: ORIGINAL_TEXT }))
  return Buffer.from(JSON.stringify({ ...ask, items: ask.items.map(({ index, itemId }) => [index, itemId]) }))
}

export function decodeAsk(bytes: Uint8Array): Ask | undefined {
  const message = fieldsOf(bytes)
  if (message === undefined || !isCount(message.id)) return undefined
  const { id, kind, seq, groupToken, messageId } = message
  if (kind === ORIGINAL_TEXT && typeof groupToken === 'string' && typeof messageId === 'string') {
    return { kind: 'original', id, groupToken, messageId }
  }
  if (kind !== 'position' || !isCount(seq) || !Array.isArray(message.items)) return undefined
  const items = all(message.items, pairOf)
  return items && { kind, id, seq, items: items.map(([index, itemId]) => ({ index, itemId })) }
}

export function encodeAnswer(answer: Answer): Buffer {
  if (answer.kind === 'original') return Buffer.from(JSON.stringify({ ...answer, kind: ORIGINAL_TEXT }))
  return Buffer.from(JSON.stringify({ ...answer, fates: answer.fates.map(fateText) }))
}

export function decodeAnswer(bytes: Uint8Array): Answer | undefined {
  const message = fieldsOf(bytes)
  if (message === undefined || !isCount(message.id)) return undefined
  const { id, kind, itemId } = message
  if (kind === ORIGINAL_TEXT && (itemId === null || typeof itemId === 'string'))
    return { kind: 'original', id, itemId }
  if (kind !== 'position' || !Array.isArray(message.fates)) return undefined
  const fates = all(message.fates, fateOf)
  return fates && { kind, id, fates }
}

const NEW_TEXT = 'new'
const UNKNOWN_TEXT = 'unknown'

function fateText(fate: Fate): string | { of: string } {
  if (fate.kind === 'duplicate') return { of: fate.of }
  return fate.kind === 'new' ? NEW_TEXT : UNKNOWN_TEXT
}

function fateOf(value: unknown): Fate | undefined {
  if (value === NEW_TEXT) return { kind: 'new' }
  if (value === UNKNOWN_TEXT) return { kind: 'unknown' }
  const of = asFields(value)?.of
  return typeof of === 'string' ? { kind: 'duplicate', of } : undefined
}

function pairOf(value: unknown): [number, string] | undefined {
  if (!Array.isArray(value)) return undefined
  const [index, id] = value as unknown[]
  return isCount(index) && typeof id === 'string' ? [index, id] : undefined
}

function all<T>(values: unknown[], read: (value: unknown) => T | undefined): T[] | undefined {
  const result: T[] = []
  for (const value of values) {
    const one = read(value)
    if (one === undefined) return undefined
    result.push(one)
  }
  return result
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function asFields(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}

function fieldsOf(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    return asFields(JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()))
  } catch {
    return undefined
  }
}
