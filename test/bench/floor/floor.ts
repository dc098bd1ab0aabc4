/**
 * The packed floor: what durable acceptance costs at least behind Koa. Raw bytes are stored as they come, in
 * packs with one append in flight, and answered 202 after the PubAck. No key, no check, no reader.
 */
import type { IncomingMessage } from 'node:http'
import Koa from 'koa'
import { connect, createInbox } from 'nats'

interface Waiting {
  raw: Buffer
  settle: (stored: boolean) => void
}

const { username: user, password: pass, host } = new URL(process.env.NATS_URL ?? '')
const nats = await connect({ servers: host, user, pass })
await (await nats.jetstreamManager()).streams.add({ name: 'FLOOR', subjects: ['floor'] })
const reply = createInbox()
const newline = Buffer.from('\n')
let waiting: Waiting[] = []
let flying: Waiting[] = []

nats.subscribe(reply, {
  callback: (_error, message) => {
    const stored = JSON.parse(message.string()).error === undefined
    for (const { settle } of flying.splice(0)) settle(stored)
    send()
  },
})

function send(): void {
  if (flying.length > 0 || waiting.length === 0) return
  flying = waiting
  waiting = []
  nats.publish('floor', Buffer.concat(flying.flatMap(({ raw }) => [raw, newline])), { reply })
}

function append(raw: Buffer): Promise<boolean> {
  return new Promise((settle) => {
    waiting.push({ raw, settle })
    send()
  })
}

function bodyOf(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
  })
}

const app = new Koa()
app.use(async (ctx) => {
  ctx.status = (await append(await bodyOf(ctx.req))) ? 202 : 503
  ctx.type = 'application/json'
  ctx.body = '{"status":"accepted"}'
})
app.listen(Number(process.env.PORT), '127.0.0.1')
