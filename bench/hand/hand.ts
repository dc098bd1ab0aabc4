/**
 * What is written by hand in an afternoon: Koa, a parsed body, its key checked, and one `js.publish` an item. No
 * credits, no duplicates. With `SINK_URL` it batches and delivers, too (`batches.ts`); else it only ingests.
 */
import Koa from 'koa'
import { connect, RetentionPolicy } from 'nats'
import { deliverBatches } from './batches.ts'

const { NATS_URL = '', SINK_URL: sinkUrl, IDLE_MS, MAX_WAIT_MS, MAX_ITEMS } = process.env
const { username: user, password: pass, host } = new URL(NATS_URL)
const nats = await connect({ servers: host, user, pass })
const manager = await nats.jetstreamManager()
const retention = sinkUrl === undefined ? RetentionPolicy.Limits : RetentionPolicy.Workqueue
await manager.streams.add({ name: 'HAND', subjects: ['hand'], retention })
const stream = nats.jetstream()
if (sinkUrl !== undefined) {
  const [idleMs, maxWaitMs, maxItems] = [Number(IDLE_MS), Number(MAX_WAIT_MS), Number(MAX_ITEMS)]
  void deliverBatches(nats, manager, 'HAND', { sinkUrl, idleMs, maxWaitMs, maxItems })
}

const app = new Koa()
app.use(async (ctx) => {
  const chunks: Buffer[] = []
  for await (const chunk of ctx.req) chunks.push(chunk)
  const raw = Buffer.concat(chunks)
  const item = JSON.parse(raw.toString()) as { key?: unknown; messageId?: unknown }
  if (typeof item.key !== 'string') return ctx.throw(400, 'no key')
  await stream.publish('hand', raw)
  ctx.status = 202
  ctx.body = { status: 'accepted', messageId: item.messageId }
})
app.listen(Number(process.env.PORT), '127.0.0.1')
