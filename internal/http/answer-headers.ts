import type { Middleware } from 'koa'

/**
 * What caches and browsers may do with an answer: keep nothing of it, and take it for nothing but what it says that it is
 * (RFC 9111, section 5.2.2.5; the Fetch standard, "X-Content-Type-Options").
 */
const HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const

/** As `writeHead` takes them, in pairs. */
export const ANSWER_HEADERS = Object.entries(HEADERS).flat() as [string, string, string, string]

/** Of a JSON answer after which the connection closes, in pairs. */
export function closingHeaders(body: string): string[] {
  const type = ['Content-Type', 'application/json; charset=utf-8']
  return [
    ...type,
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Connection',
    'close',
    ...ANSWER_HEADERS,
  ]
}

/** As lines of an answer that is written by hand, each with its end. */
export const ANSWER_HEADER_LINES = Object.entries(HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/** Of every answer of the application. One that may be kept says so itself. */
export const answerHeaders: Middleware = async (ctx, next) => {
  ctx.set(HEADERS)
  await next()
}
