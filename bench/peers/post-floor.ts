/** The floor of deliveries: POSTs of one body, as many as one process gets out through an undici pool. */
import { Pool } from 'undici'
import { markerOf } from '../load/marker.ts'
import { answering, monotonicMs } from '../load/program.ts'

export interface Posting {
  kind: 'post'
  /** Address of the sink. */
  url: string
  connections: number
  /** Items of a body, and bytes of each. */
  items: number
  size: number
  ms: number
}

export interface Posted {
  perSecond: number
  /** Bytes of the body. */
  bytes: number
}

answering(async ({ url, connections, items, size, ms }: Posting): Promise<Posted> => {
  const { origin, pathname: path } = new URL(url)
  const pool = new Pool(origin, { connections })
  const body = bodyOf(items, size)
  const headers = { 'Content-Type': 'application/json', 'X-Idempotency-Key': 'grp:floor:v1' }
  const began = monotonicMs()
  const end = began + ms
  let posts = 0
  const worker = async () => {
    while (monotonicMs() < end) {
      const answer = await pool.request({ method: 'POST', path, headers, body })
      await answer.body.dump()
      posts++
    }
  }
  await Promise.all(Array.from({ length: connections }, worker))
  const perSecond = (posts / (monotonicMs() - began)) * 1_000
  await pool.close()
  return { perSecond, bytes: body.length }
})

/** With the markers that the sink looks for, so that it has as much to do. */
function bodyOf(items: number, size: number): Buffer {
  const item = (_: unknown, n: number) => {
    const start = `{"messageId":"m${n}","payload":{"ref":"${markerOf(n)}","pad":"`
    return `${start}${'x'.repeat(Math.max(0, size - start.length))}"}}`
  }
  return Buffer.from(`{"items":[${Array.from({ length: items }, item).join(',')}]}`)
}
