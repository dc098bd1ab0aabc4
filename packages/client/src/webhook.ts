/** A webhook as it goes out: its bytes, its id and its signature (docs/guide/senders.md). */
import { createHmac, randomUUID } from 'node:crypto'

export interface WebhookOptions {
  /**
   * Names the webhook in all its attempts: 1 to 512 printable ASCII characters. Default: the `messageId` of the payload, the
   * header `X-Idempotency-Key`, or else a random UUID. To send a webhook again in another run of a program, keep it.
   */
  readonly messageId?: string
  /** Signs the body, where the buffer verifies its senders. */
  readonly signing?: WebhookSigning
  /** More headers, such as that of the group key; sent in UTF-8. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface WebhookSigning {
  /** `sourceVerification.signingSecret` of the buffer. */
  readonly secret: string
  /** `sourceVerification.signatureHeader` of the buffer. Default `x-webhook-signature`. */
  readonly header?: string
}

export interface Webhook {
  /** The same bytes in every attempt. */
  readonly body: Uint8Array<ArrayBuffer>
  readonly headers: Readonly<Record<string, string>>
  readonly messageId: string
}

const ID_HEADER = 'X-Idempotency-Key'
const SIGNATURE_HEADER = 'x-webhook-signature'
const ID_IN_HEADER = /^[\x21-\x7e](?:[\x20-\x7e]{0,510}[\x21-\x7e])?$/

/** `payload`: bytes go as they are, anything else as its JSON. Throws a TypeError that names what is wrong. */
export function webhookOf(
  payload: unknown,
  { messageId, signing, headers: given = {} }: WebhookOptions,
): Webhook {
  const body = bytesOf(payload)
  const own = idIn(body)
  const { named, headers } = withoutId(given)
  if (messageId !== undefined && named !== undefined && messageId !== named)
    throw new TypeError(`messageId differs from the header ${ID_HEADER}`)
  if (own !== undefined && messageId !== undefined && own !== messageId)
    throw new TypeError('messageId differs from the messageId of the payload, which counts')
  const id = own ?? messageId ?? named ?? randomUUID()
  if (own === undefined && !ID_IN_HEADER.test(id))
    throw new TypeError('messageId must be 1 to 512 printable ASCII characters')
  return {
    body,
    messageId: id,
    headers: {
      ...inUtf8(own === undefined ? { ...headers, [ID_HEADER]: id } : given),
      ...(signing !== undefined && signatureOf(body, signing)),
    },
  }
}

function bytesOf(payload: unknown): Uint8Array<ArrayBuffer> {
  if (payload instanceof Uint8Array) return new Uint8Array(payload)
  const text = JSON.stringify(payload)
  if (text === undefined) throw new TypeError('payload must be bytes, or a value that JSON has')
  return new TextEncoder().encode(text)
}

/** An id counts wherever its sender wrote it. */
function withoutId(given: Readonly<Record<string, string>>): {
  named: string | undefined
  headers: Readonly<Record<string, string>>
} {
  const isId = ([name]: readonly [string, string]) => name.toLowerCase() === ID_HEADER.toLowerCase()
  const all = Object.entries(given)
  return { named: all.find(isId)?.[1], headers: Object.fromEntries(all.filter((each) => !isId(each))) }
}

/** As `fetch` takes bytes: a character for each. The service reads UTF-8, so a text is the same as in a body. */
function inUtf8(headers: Readonly<Record<string, string>>): Record<string, string> {
  const bytesOf = (text: string) => Buffer.from(text).toString('latin1')
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, bytesOf(value)]))
}

/** The service reads it first, and takes a blank one for none. What is no JSON has none, and is refused by the service. */
function idIn(body: Uint8Array): string | undefined {
  try {
    const { messageId } = JSON.parse(new TextDecoder().decode(body)) as { messageId?: unknown }
    const isId = typeof messageId === 'number' || (typeof messageId === 'string' && messageId !== '')
    return isId ? String(messageId) : undefined
  } catch {
    return undefined
  }
}

function signatureOf(body: Uint8Array, signing: WebhookSigning): Record<string, string> {
  const { secret, header = SIGNATURE_HEADER } = signing
  if (secret === '') throw new TypeError('signing.secret must not be empty')
  return { [header]: createHmac('sha256', secret).update(body).digest('hex') }
}
