/**
 * The destination: a process of its own that answers 200 and remembers which items came, and when. What is sent to `/never` it
 * leaves without an answer, and remembers how many.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { idsIn } from './marker.ts'
import { answering, monotonicMs } from './program.ts'

export type SinkQuestion =
  | { kind: 'listen' }
  | { kind: 'stats' }
  | { kind: 'arrivals' }
  | { kind: 'batches' }
  | { kind: 'reset' }
export interface SinkAnswers {
  listen: { url: string }
  stats: { requests: number; items: number; distinct: number; unanswered: number }
  /** Monotonic ms at which each item came first. */
  arrivals: [id: number, at: number][]
  batches: Batches
  reset: null
}

/** Requests in the order in which they were complete. */
export interface Batches {
  /** Monotonic ms at which each began. */
  at: Float64Array
  /** Items of each. */
  sizes: Uint32Array
  /** Of all items of all requests, in order. */
  ids: Uint32Array
}

const seen = new Map<number, number>()
let batches: { at: number[]; sizes: number[]; ids: number[] } = { at: [], sizes: [], ids: [] }
let requests = 0
let items = 0
let unanswered = 0

const server = createServer((request, response) => {
  if (request.url === '/never') {
    unanswered++
    request.resume()
    return
  }
  const at = monotonicMs()
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    response.writeHead(200, { 'Content-Length': 0 }).end()
    record(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), at)
  })
})

function record(body: Buffer, at: number): void {
  requests++
  const found = idsIn(body)
  batches.at.push(at)
  batches.sizes.push(found.length)
  for (const id of found) {
    items++
    batches.ids.push(id)
    if (!seen.has(id)) seen.set(id, at)
  }
}

answering(async ({ kind }: SinkQuestion) => {
  switch (kind) {
    case 'listen':
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
    case 'stats':
      return { requests, items, distinct: seen.size, unanswered }
    case 'arrivals':
      return [...seen]
    case 'batches':
      return {
        at: Float64Array.from(batches.at),
        sizes: Uint32Array.from(batches.sizes),
        ids: Uint32Array.from(batches.ids),
      }
    case 'reset':
      seen.clear()
      batches = { at: [], sizes: [], ids: [] }
      requests = 0
      items = 0
      unanswered = 0
      return null
  }
})
