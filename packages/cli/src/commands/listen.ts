/** `listen`: a receiver to look at batches, and to try what the service does with its answers. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Batch,
  BatchError,
  BodyTooLargeError,
  parseBatch,
  readRawBody,
  SignatureError,
  unwrap,
} from '@penstock-local/receiver'
import { type Command, Option } from 'commander'
import { EXIT } from '../exit.ts'
import { Failure } from '../failure.ts'
import { wholeNumber } from '../numbers.ts'
import { jsonLine, printable } from '../output.ts'
import type { Session } from '../session.ts'

interface ListenOptions {
  readonly port: number
  readonly host: string
  readonly answer: '200' | '429' | '500'
  readonly delay: number
  readonly first?: number
  readonly unsigned?: true
  readonly signatureHeader?: string
  readonly idempotencyHeader?: string
}

/** The largest batch that a buffer can be set to, and what stands around its payloads. */
const MAX_BYTES = 64 * 1024 * 1024
const HOUR_MS = 3_600_000

export function addListenCommand(program: Command, session: (command: Command) => Session): void {
  program
    .command('listen')
    .description('a receiver that verifies batches, prints them, and answers as it is told')
    .option('--port <n>', '0: any free one', wholeNumber(0, 65_535), 3000)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .addOption(
      new Option('--answer <status>', 'answer to a batch').choices(['200', '429', '500']).default('200'),
    )
    .option('--delay <ms>', 'pause before the answer; the service waits 10 s', wholeNumber(0, HOUR_MS), 0)
    .option(
      '--first <n>',
      'only the first n batches get this answer and pause, the others 200',
      wholeNumber(1, 1e9),
    )
    .option('--unsigned', 'verify nothing')
    .option('--signature-header <name>', 'header of the signature')
    .option('--idempotency-header <name>', 'header of the idempotency key')
    .addHelpText('after', HELP)
    .action((options: ListenOptions, command: Command) => listen(session(command), options))
}

const HELP = `
PENSTOCK_SIGNING_SECRETS holds delivery.signing.secret of the buffer; several are separated by commas.
A wrong signature is answered 401 and what is no batch 400, as by any receiver. The service makes a
dead letter of every 4xx at once, also of 429. It tries again after 500, and when no answer comes in 10 s.

Examples:
  $ PENSTOCK_SIGNING_SECRETS=s3cret penstock listen
  $ penstock listen --unsigned --answer 500 --first 2
  $ penstock listen --unsigned --delay 12000
`

/** Resolves when it is ended. */
async function listen(on: Session, options: ListenOptions): Promise<void> {
  const open = opener(on, options)
  let batches = 0
  const server = createServer(async (request, response) => {
    const opened = await open(request)
    if (!(opened instanceof Error)) batches++
    const isToldHow = options.first === undefined || batches <= options.first
    const status = opened instanceof Error ? refusalOf(opened) : isToldHow ? Number(options.answer) : 200
    if (!(opened instanceof Error) && isToldHow) await sleep(options.delay, undefined, { ref: false })
    show(on, status, opened)
    respond(response, status)
  })
  await listening(server, options)
  const { port } = server.address() as AddressInfo
  on.print({ listening: `http://${options.host}:${port}` }, `listening on http://${options.host}:${port}`)
  await ending(on)
  server.close()
  server.closeAllConnections()
}

function opener(on: Session, options: ListenOptions): (request: IncomingMessage) => Promise<Batch | Error> {
  const { unsigned, ...headers } = options
  const secrets = unsigned ? [] : on.secret('PENSTOCK_SIGNING_SECRETS').split(',')
  return async (request) => {
    try {
      const body = await readRawBody(request, MAX_BYTES)
      return unsigned
        ? parseBatch(body, request.headers, headers)
        : unwrap(body, request.headers, secrets, headers)
    } catch (error) {
      return error as Error
    }
  }
}

function refusalOf(error: Error): number {
  if (error instanceof SignatureError) return 401
  if (error instanceof BatchError) return 400
  return error instanceof BodyTooLargeError ? 413 : 500
}

function show(on: Session, status: number, opened: Batch | Error): void {
  if (opened instanceof Error) {
    on.print({ status, error: opened.message }, printable(`${status} ${opened.message}`))
    return
  }
  const { svc, items, idempotencyKey } = opened
  const head = printable(
    `${status} ${svc.bufferId} ${svc.groupKey}: ${items.length} items, ${idempotencyKey}`,
  )
  const lines = items.map(({ messageId, payload }) => `  ${printable(messageId)} ${jsonLine(payload)}`)
  on.print({ status, batch: opened }, [head, ...lines].join('\n'))
}

function respond(response: ServerResponse, status: number): void {
  if (response.destroyed) return
  const wait = status === 429 ? { 'retry-after': '1' } : {}
  response.writeHead(status, { 'content-type': 'application/json', ...wait })
  response.end(status === 200 ? '{"failed":[]}' : '{"error":"as penstock listen was told"}')
}

async function listening(server: Server, { host, port }: ListenOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      reject(new Failure(EXIT.usage, `cannot listen on ${host}:${port}: ${code ?? message}`)),
    )
    server.listen(port, host, resolve)
  })
}

/** Of a command that goes on for ever: a signal, or an output that nobody reads any more. */
export async function ending({ streams: { stdout } }: Session): Promise<void> {
  await new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, resolve)
    stdout.once('error', resolve)
  })
}
