/** Requests as finished texts: building one costs the generator a few microseconds. */
import { createHmac } from 'node:crypto'
import { DEFAULT_SOURCE_SIGNATURE_HEADER } from '../../internal/domain/signatures/schemes.ts'
import { markerOf } from './marker.ts'

export interface RequestTemplate {
  /** Ingest address. */
  url: string
  headers: Record<string, string>
  /** Bytes of a body. */
  size: number
  /** Whether the sender names its items: only then are they deduplicated. */
  explicit: boolean
  /** Secret that bodies are signed with; unset: no signature. */
  secret?: string
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The text of a request for an item and its key. */
export function requestWriter(template: RequestTemplate): (id: number, key: string) => string {
  const { pathname, host } = new URL(template.url)
  const lines = Object.entries(template.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n${lines.join('')}Content-Length: `
  const padding = randomText(1 << 17)
  return (id, key) => {
    const name = template.explicit ? `"messageId":"m${id}",` : ''
    const start = `{"key":"${key}",${name}"ref":"${markerOf(id)}","pad":"`
    const room = Math.max(0, template.size - start.length - 2)
    // Another text each time, so that a store that compresses gains nothing unfair.
    const at = (id * 131) % (padding.length - room)
    const body = `${start}${padding.slice(at, at + room)}"}`
    return `${head}${body.length}\r\n${signatureLine(body, template.secret)}\r\n${body}`
  }
}

function signatureLine(body: string, secret: string | undefined): string {
  if (secret === undefined) return ''
  return `${DEFAULT_SOURCE_SIGNATURE_HEADER}: ${createHmac('sha256', secret).update(body).digest('hex')}\r\n`
}

function randomText(length: number): string {
  let seed = 7
  let text = ''
  for (let i = 0; i < length; i++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    text += LETTERS[(seed >>> 16) % LETTERS.length]
  }
  return text
}
