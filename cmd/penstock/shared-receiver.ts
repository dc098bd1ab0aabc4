/** The receiver of the local instance where several processes take requests: one has it, the others pass on to that. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import Koa, { type Middleware } from 'koa'
import type { Receiver } from '../../internal/http/receiver.ts'
import type { Node } from '../wiring/foundation.ts'

const PREFIX = '/local/receiver/'
/** Of an answer, what is not about its connection. */
const PASSED_ON = ['content-type', 'allow']

/** Its address, for the other processes on this machine. */
export async function offer({ lifecycle }: Node, receiver: Receiver): Promise<string> {
  const server = await lifecycle.acquire(
    'receiver of all processes',
    async () => {
      const app = new Koa().use(receiver.middleware)
      const made = createServer(app.callback())
      await new Promise<void>((resolve, reject) => {
        made.once('error', reject).listen(0, '127.0.0.1', resolve)
      })
      return made
    },
    async (it) => {
      it.closeAllConnections()
      await new Promise((resolve) => it.close(resolve))
    },
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Koa middleware: what is for a receiver is answered by that at `url`. */
export function forwardTo(url: string): Middleware {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(PREFIX)) return next()
    const hasBody = ctx.method !== 'GET' && ctx.method !== 'HEAD'
    const { connection: _, host: __, 'transfer-encoding': ___, ...headers } = ctx.headers
    const answer = await fetch(new URL(ctx.url, url), {
      method: ctx.method,
      headers: headers as Record<string, string>,
      ...(hasBody && { body: Readable.toWeb(ctx.req) as ReadableStream, duplex: 'half' as const }),
    })
    ctx.status = answer.status
    for (const name of PASSED_ON) {
      const value = answer.headers.get(name)
      if (value !== null) ctx.set(name, value)
    }
    ctx.body = Buffer.from(await answer.arrayBuffer())
  }
}
