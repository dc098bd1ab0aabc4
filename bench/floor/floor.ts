/**
 * The packed floor: what durable acceptance costs at least behind Koa. Raw bytes are stored as they come, in
 * packs with one append in flight, and answered 202 after the PubAck. No key, no check, no reader.
 */
import type { IncomingMessage } from 'node:http'
import Koa from 'koa'
import { append } from './append.ts'

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
