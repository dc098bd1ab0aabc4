/** A delivered or stored body as the checker needs it: what it says of itself, and each payload by its exact bytes. */
import { createHash } from 'node:crypto'
import { rawElements, rawMembers } from './raw-json.ts'

/** An item inside a delivered or dead batch. */
export interface BatchItem {
  readonly n: number
  readonly messageId: string
  readonly receivedAt: number
  /** Of the exact bytes between the item's `"payload":` and its end. */
  readonly payloadHash: string
  readonly payloadBytes: number
}

/** `svc` of a body, but for buffer and group key. */
export interface Origin {
  readonly customerId: string
  readonly projectId: string
  readonly groupHash: string
  readonly segment: number
}

/** `window` of a body. */
export interface Window {
  readonly firstItemAt: number
  readonly lastActivityAt: number
  readonly itemsCount: number
}

export interface Batch {
  /** Value of the idempotency header. */
  readonly key: string
  readonly bufferId: string
  readonly groupKey: string
  readonly origin: Origin
  readonly window: Window
  readonly bodyHash: string
  /** Members of the body that it should not have, or has not. */
  readonly strange: readonly string[]
  readonly items: readonly BatchItem[]
}

interface Body {
  svc: Origin & { bufferId: string; groupKey: string }
  window: Window
  items: { messageId: string; receivedAt: number; payload: { n: number } }[]
}

const MEMBERS = {
  body: ['svc', 'window', 'items'],
  svc: ['customerId', 'projectId', 'bufferId', 'groupKey', 'groupHash', 'segment'],
  window: ['firstItemAt', 'lastActivityAt', 'itemsCount'],
  item: ['messageId', 'receivedAt', 'payload'],
}

/** 96 bits are enough to tell bodies apart. */
export function hashOf(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 16)
}

/** With its idempotency key. The run's payloads are the JSON of objects with a number `n`. Throws when it is no such body. */
export function readBatch(key: string, body: Uint8Array): Batch {
  const text = Buffer.from(body).toString('utf8')
  const { svc, window, items } = JSON.parse(text) as Body
  const { bufferId, groupKey, customerId, projectId, groupHash, segment } = svc
  const raws = rawItems(text)
  return {
    key,
    bufferId,
    groupKey,
    origin: { customerId, projectId, groupHash, segment },
    window: { ...window },
    bodyHash: hashOf(body),
    strange: strangeMembers(text, raws),
    items: items.map(({ messageId, receivedAt, payload }, index) => {
      const raw = new Map(rawMembers(raws[index]!)).get('payload') ?? ''
      return {
        n: payload.n,
        messageId,
        receivedAt,
        payloadHash: hashOf(raw),
        payloadBytes: Buffer.byteLength(raw),
      }
    }),
  }
}

function rawItems(text: string): string[] {
  return rawElements(new Map(rawMembers(text)).get('items') ?? '[]')
}

/** Each object of the body has exactly its members, each once and in their order. */
function strangeMembers(text: string, items: readonly string[]): string[] {
  const body = new Map(rawMembers(text))
  return [
    ...differing('body', text),
    ...differing('svc', body.get('svc')),
    ...differing('window', body.get('window')),
    ...items.flatMap((item) => differing('item', item)),
  ]
}

function differing(what: keyof typeof MEMBERS, text = '{}'): string[] {
  const names = rawMembers(text).map(([name]) => name)
  return names.join() === MEMBERS[what].join() ? [] : [`${what}: ${names.join(', ')}`]
}
