/**
 * The ops port of every role: `/live`, `/ready`, `/metrics` (docs/architecture/protocol.md, "Configuration"), and
 * `/shards` where some may run.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { messageOf } from '../runtime/thrown.ts'
import { isOpsHost } from './ops-host.ts'

export interface OpsOptions {
  host: string
  /** 0: any free port. */
  port: number
  /** Whether traffic should come here; a rejection counts as no. Also asked while the process starts. */
  ready(): boolean | Promise<boolean>
  metrics(request: IncomingMessage, response: ServerResponse): void
  /** JSON of what is known of the shards; undefined: not yet, or none ever run here. Also asked while the process starts. */
  shards?(): Promise<unknown> | undefined
}

export interface OpsServer {
  /** The port as bound. */
  readonly port: number
  close(): Promise<void>
}

/** Rejects with the bind error. */
export async function startOps(options: OpsOptions): Promise<OpsServer> {
  const server = createServer((request, response) => void answer(options, request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return { port: (server.address() as AddressInfo).port, close: () => close(server) }
}

const FOREIGN_HOST =
  'The ops port is reached by an IP address, a name without a dot, or one that ends in .localhost, .local, .internal or .svc'

async function answer(
  options: OpsOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = request.url?.split('?')[0]
  // These say one word, and a load balancer may ask by any name.
  if (path === '/live') return send(response, 200, 'live')
  if (path === '/ready') return readiness(options, response)
  if (!isOpsHost(request.headers.host, options.host)) return send(response, 400, FOREIGN_HOST)
  if (path === '/metrics') options.metrics(request, response)
  else if (path === '/shards') await shards(options, response)
  else send(response, 404, 'not found')
}

async function shards(options: OpsOptions, response: ServerResponse): Promise<void> {
  try {
    const table = await options.shards?.()
    if (table === undefined) return send(response, 404, 'no shards run here')
    const headers = { 'Content-Type': 'application/json; charset=utf-8' }
    response.writeHead(200, headers).end(`${JSON.stringify(table)}\n`)
  } catch (error) {
    send(response, 503, messageOf(error))
  }
}

async function readiness(options: OpsOptions, response: ServerResponse): Promise<void> {
  const ready = await Promise.resolve()
    .then(options.ready)
    .catch(() => false)
  send(response, ready ? 200 : 503, ready ? 'ready' : 'not ready')
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${text}\n`)
}

function close(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()))
    server.closeAllConnections()
  })
}
