/** A delivered or stored body as the checker needs it: what it says of itself, and each payload by its exact bytes. */
import { type Batch, hashOf, type Origin, type Window } from './history.ts'
import { rawElements, rawMembers } from './raw-json.ts'

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
