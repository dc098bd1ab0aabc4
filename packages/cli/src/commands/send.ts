/** `send`: webhooks from a file or from stdin. */
import {
  type Ingested,
  NoAnswerError,
  type Penstock,
  RefusedError,
  type WebhookOptions,
} from '@penstock-local/client'
import type { Command } from 'commander'
import { EXIT } from '../exit.ts'
import { exitCodeOf, Failure } from '../failure.ts'
import { parsedJson, readLines, readText } from '../input.ts'
import { wholeNumber } from '../numbers.ts'
import { printable } from '../output.ts'
import type { Session } from '../session.ts'

interface SendOptions {
  readonly sign?: true
  readonly signatureHeader?: string
  readonly header: readonly (readonly [string, string])[]
  readonly messageId?: string
  readonly parallel: number
}

interface Line {
  readonly line: number
  readonly content: string
}

const LINES = /\.(ndjson|jsonl)$/

export function addSendCommand(program: Command, session: (command: Command) => Session): void {
  program
    .command('send')
    .description('send webhooks: one from a JSON file, or one a line (NDJSON)')
    .argument('<project>', 'project of the buffer')
    .argument('<buffer>', 'buffer that takes the webhooks')
    .argument('[file]', 'a JSON file, an .ndjson file, or - for NDJSON from stdin', '-')
    .option('--sign', 'sign each with the secret in PENSTOCK_SOURCE_SECRET')
    .option('--signature-header <name>', 'header of the signature', 'x-webhook-signature')
    .option('--header <name: value>', 'one more header, such as that of the group key', headerLine, [])
    .option('--message-id <id>', 'id of the webhook of a JSON file; default: its messageId, or a random UUID')
    .option(
      '--parallel <n>',
      'webhooks under way at once; above 1 their order is open',
      wholeNumber(1, 64),
      1,
    )
    .addHelpText('after', HELP)
    .action(
      async (projectId: string, bufferId: string, file: string, options: SendOptions, command: Command) => {
        const on = session(command)
        const place = { projectId, bufferId }
        const webhook = webhookOptions(on, options)
        const send = (penstock: Penstock, content: string) =>
          penstock.ingest(place, Buffer.from(content), webhook)
        if (file === '-' || LINES.test(file)) return sendLines(on, readLines(file, on.streams), options, send)
        const content = await readText(file, on.streams)
        parsedJson(content, file)
        printTaken(on, await send(on.sender(), content))
      },
    )
}

const HELP = `
A webhook keeps its id over all attempts, so it is stored once. Lines are sent in their order. A line
that is refused is told, and the others go on; the exit code is then 6.

Examples:
  $ penstock send shop orders order.json
  $ generate-orders | penstock send shop orders --json
  $ PENSTOCK_SOURCE_SECRET=… penstock send shop orders orders.ndjson --sign
  $ penstock send shop orders order.json --header 'X-Customer: ada'
`

function webhookOptions(
  on: Session,
  { sign, signatureHeader, header, messageId }: SendOptions,
): WebhookOptions {
  const signing = sign && {
    secret: on.secret('PENSTOCK_SOURCE_SECRET'),
    ...(signatureHeader && { header: signatureHeader }),
  }
  return {
    headers: Object.fromEntries(header),
    ...(signing && { signing }),
    ...(messageId !== undefined && { messageId }),
  }
}

/** Each of `parallel` senders takes the next line when its own is over. What would fail for every line ends all. */
async function sendLines(
  on: Session,
  lines: AsyncGenerator<Line>,
  { parallel, messageId }: SendOptions,
  send: (penstock: Penstock, content: string) => Promise<Ingested>,
): Promise<void> {
  if (messageId !== undefined)
    throw new Failure(EXIT.usage, '--message-id names one webhook: give a JSON file')
  const penstock = on.sender()
  const counts = { sent: 0, refused: 0 }
  const sender = async () => {
    for await (const { line, content } of lines) {
      const taken = await lineSent(line, () => send(penstock, content), content)
      if (taken instanceof Error) printRefused(on, line, taken)
      else printTaken(on, taken, line)
      counts[taken instanceof Error ? 'refused' : 'sent']++
    }
  }
  await Promise.all(Array.from({ length: parallel }, sender))
  if (counts.refused > 0) throw new Failure(EXIT.partly, `${counts.refused} refused, ${counts.sent} sent`)
}

/** A refusal of this line alone; throws what ends the others, too. */
async function lineSent(
  line: number,
  send: () => Promise<Ingested>,
  content: string,
): Promise<Ingested | Error> {
  try {
    parsedJson(content, `line ${line}`)
    return await send()
  } catch (error) {
    const ofThisLine =
      error instanceof Failure || (error instanceof RefusedError && [400, 413].includes(error.status))
    if (ofThisLine || error instanceof TypeError) return error
    const known = error instanceof RefusedError || error instanceof NoAnswerError
    if (!known) throw error
    throw new Failure(exitCodeOf(error) as 5, `stopped at line ${line}: ${error.message}`, { cause: error })
  }
}

function printTaken(on: Session, taken: Ingested, line?: number): void {
  const status = taken.duplicate ? 'duplicate' : 'accepted'
  on.print(
    { ...(line !== undefined && { line }), status, ...taken },
    printable(`${status} ${taken.messageId}`),
  )
}

function printRefused(on: Session, line: number, error: Error): void {
  const text = error.message.startsWith('line ') ? error.message : `line ${line}: ${error.message}`
  on.print({ line, status: 'refused', error: error.message }, printable(`refused ${text}`))
}

function headerLine(text: string, before: readonly (readonly [string, string])[]) {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): *(.*)$/.exec(text) ?? []
  if (name === undefined || value === undefined)
    throw new Failure(EXIT.usage, '--header must be "name: value"')
  return [...before, [name, value] as const]
}
