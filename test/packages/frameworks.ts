/** One handler of `packages/receiver`, served as the users of each framework serve it. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import express from 'express'
import Koa from 'koa'
import type { Handler } from '../../packages/receiver/src/handler.ts'

export const FRAMEWORKS: Readonly<Record<string, (handler: Handler) => RequestListener>> = {
  http: ({ node }) => node,
  express: (handler) => express().post('/', handler.express),
  koa: (handler) => new Koa().use(handler.koa).callback(),
  fetch: (handler) => async (request, response) => {
    const headers = request.headers as Record<string, string>
    const body = Readable.toWeb(request) as ReadableStream<Uint8Array>
    const init = { method: 'POST', headers, body, duplex: 'half' } as const
    const answer = await handler.fetch(new Request(`http://${headers.host}/`, init))
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  },
}

/** Listens on a free port of 127.0.0.1. */
export async function served(listener: RequestListener): Promise<{ server: Server; url: string }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

export function stopped(server: Server): void {
  server.close()
  server.closeAllConnections()
}
