/** The receiver of the local instance where several processes take requests: one has it, the others pass on to that. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa, { type Middleware } from 'koa'
import { type Dispatcher, request } from 'undici'
import { ownRequests } from '../../internal/http/own-requests.ts'
import { RECEIVER_PREFIX, type Receiver, receiverName } from '../../internal/http/receiver.ts'
import type { Node } from '../wiring/foundation.ts'

/** Headers that are about the connection they came by. */
const OF_CONNECTION = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'expect'])
/** What the receiver's answers say besides their length. */
const PASSED_BACK = ['content-type', 'allow']

/** Its address, for the other processes on this machine. */
export async function offer({ lifecycle, config }: Node, receiver: Receiver): Promise<string> {
  const server = await lifecycle.acquire(
    'receiver of all processes',
    async () => {
      const app = new Koa().use(ownRequests(config.host)).use(receiver.middleware)
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

/**
 * Koa middleware: what is for a receiver is answered by that at `url`, which sees the request as it came. Of its target only
 * the name goes on: whatever else stands there could lead elsewhere.
 */
export function forwardTo(url: string): Middleware {
  return async (ctx, next) => {
    const name = receiverName(ctx.path)
    if (name === undefined) return next()
    const headers = Object.entries(ctx.headers).filter(([name]) => !OF_CONNECTION.has(name))
    const answer = await request(new URL(RECEIVER_PREFIX + name, url), {
      method: ctx.method as Dispatcher.HttpMethod,
      headers: Object.fromEntries(headers),
      body: ctx.method === 'GET' || ctx.method === 'HEAD' ? null : ctx.req,
    })
    ctx.status = answer.statusCode
    for (const name of PASSED_BACK) {
      const value = answer.headers[name]
      if (value !== undefined) ctx.set(name, value)
    }
    ctx.body = Buffer.from(await answer.body.arrayBuffer())
  }
}
