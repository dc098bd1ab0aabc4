/** The HTTP front of the peers that run in Node: Koa, a parsed body, its key checked, 202 once it is stored. */
import Koa from 'koa'

export interface Item {
  key: string
  messageId?: string
}

/** Listens on PORT; the promise of `store` settles the request. */
export function listen(store: (item: Item, raw: Buffer) => Promise<unknown>): void {
  const app = new Koa()
  app.use(async (ctx) => {
    const chunks: Buffer[] = []
    for await (const chunk of ctx.req) chunks.push(chunk)
    const raw = Buffer.concat(chunks)
    const item = JSON.parse(raw.toString()) as Item
    if (typeof item.key !== 'string') return ctx.throw(400, 'no key')
    await store(item, raw)
    ctx.status = 202
    ctx.body = { status: 'accepted', messageId: item.messageId }
  })
  app.listen(Number(process.env.PORT), '127.0.0.1')
}
