/**
 * What is written by hand in an afternoon: Koa, a parsed body, its key checked, and one `js.publish` an item.
 * Ingest only: no batches, no credits, no duplicates.
 */
import Koa from 'koa'
import { connect } from 'nats'

const { username: user, password: pass, host } = new URL(process.env.NATS_URL ?? '')
const nats = await connect({ servers: host, user, pass })
await (await nats.jetstreamManager()).streams.add({ name: 'HAND', subjects: ['hand'] })
const stream = nats.jetstream()

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
