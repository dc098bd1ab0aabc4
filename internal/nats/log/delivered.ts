/** What a delivered message says about itself: position and time in its reply subject, id in its headers. */
import type { Msg } from 'nats'

export interface Delivery {
  /** Sequence in the stream. */
  seq: number
  /** Number of the message within its consumer, from 1: a gap means that one was lost on the way. */
  consumerSeq: number
  /** The broker's timestamp, Unix ms. */
  at: number
}

const DOT = 0x2e
const ZERO = 0x30
const NANOS_DIGITS = 6

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<delivered>.<seq>.<consumer seq>.<ns>.<pending>`; a server in a domain
 * puts domain and account in front of the stream. undefined for any other subject, thus also for a message
 * of another consumer. By hand because it happens for each message.
 */
export function readDelivery(reply: string, stream: string, consumer: string): Delivery | undefined {
  const names = `.${stream}.${consumer}.`
  const found = reply.indexOf(names)
  if (found < 0 || !reply.startsWith('$JS.ACK')) return undefined
  let cursor = found + names.length
  const number = (until: number) => {
    let value = 0
    for (; cursor < until; cursor++) {
      const digit = reply.charCodeAt(cursor) - ZERO
      value = digit >= 0 && digit <= 9 ? value * 10 + digit : Number.NaN
    }
    cursor++
    return value
  }
  const end = () => endOfToken(reply, cursor)
  number(end())
  const seq = number(end())
  const consumerSeq = number(end())
  const at = number(end() - NANOS_DIGITS)
  return Number.isSafeInteger(seq) && consumerSeq > 0 ? { seq, consumerSeq, at } : undefined
}

function endOfToken(text: string, from: number): number {
  let cursor = from
  while (cursor < text.length && text.charCodeAt(cursor) !== DOT) cursor++
  return cursor
}

const ID_HEADER = 'Nats-Msg-Id:'
const HEADER_START = 'NATS/1.0'

/** `Nats-Msg-Id` of raw headers, null without. */
export function msgIdOf(headers: string): string | null {
  const found = headers.indexOf(ID_HEADER)
  if (found < 0) return null
  const end = headers.indexOf('\r\n', found)
  return headers.slice(found + ID_HEADER.length, end < 0 ? undefined : end).trim()
}

/**
 * Bytes of subject, reply, headers and data together, as the broker counts them. The client's messages know
 * it; its type does not say so.
 */
export function sizeOf(message: Msg): number {
  return (message as Msg & { size(): number }).size()
}

/**
 * `Nats-Msg-Id` of a message. Its header bytes lie in front of its data in the same memory, which is four
 * times cheaper to read than the client's header object; that object is asked when they do not.
 */
export function msgIdOfMessage(message: Msg, reply: string): string | null {
  const { data } = message
  const length = sizeOf(message) - message.subject.length - reply.length - data.length
  if (length > 0 && length <= data.byteOffset) {
    const raw = Buffer.from(data.buffer, data.byteOffset - length, length).toString('latin1')
    if (raw.startsWith(HEADER_START)) return msgIdOf(raw)
  }
  return message.headers?.get('Nats-Msg-Id') || null
}
