/** `dlq ls|show|retry|rm`. */
import { must, type Penstock, RefusedError, type Schemas } from '@penstock-local/client'
import type { Command } from 'commander'
import { collect } from '../collect.ts'
import { EXIT } from '../exit.ts'
import { exitCodeOf, Failure } from '../failure.ts'
import { wholeNumber } from '../numbers.ts'
import { isoTime, jsonText, printable, table } from '../output.ts'
import type { Session } from '../session.ts'

type Dead = Schemas['DlqItem']

export function addDeadLetterCommands(program: Command, session: (command: Command) => Session): void {
  const dlq = program.command('dlq').description('dead letters').addHelpText('after', HELP)
  addReading(dlq, session)
  addEnding(dlq, session)
}

const HELP = `
Examples:
  $ penstock dlq ls --buffer orders
  $ penstock dlq show dlq_8d3f0b6a5c1e4f7a9b2d6c01 --batch
  $ penstock dlq retry --all-of orders
  $ penstock dlq rm dlq_8d3f0b6a5c1e4f7a9b2d6c01
`

function addReading(dlq: Command, session: (command: Command) => Session): void {
  dlq
    .command('ls')
    .description('list them, newest first')
    .option('--buffer <id>', 'only those of this buffer')
    .option('--limit <n>', 'at most so many', wholeNumber(1, 500), 100)
    .action(async ({ buffer, limit }: { buffer?: string; limit: number }, command: Command) => {
      const on = session(command)
      const filter = buffer === undefined ? {} : { bufferId: buffer }
      const found = await collect(on.penstock().newestDeadLetters(filter, limit), limit)
      on.print(found, list(found))
    })
  dlq
    .command('show')
    .description('show one, as JSON')
    .argument('<dlqId>')
    .option('--batch', 'the body that was not delivered')
    .action(async (dlqId: string, { batch }: { batch?: true }, command: Command) => {
      const on = session(command)
      const penstock = on.penstock()
      const { api } = penstock
      const params = { path: { dlqId }, query: { customerId: await penstock.customerId() } }
      const what = `dead letter ${dlqId}`
      const shown = batch
        ? must(what, await api.GET('/v1/dlq/{dlqId}/batch', { params }))
        : must(what, await api.GET('/v1/dlq/{dlqId}', { params }))
      on.print(shown, jsonText(shown))
    })
}

function addEnding(dlq: Command, session: (command: Command) => Session): void {
  dlq
    .command('retry')
    .description('deliver again, one attempt each')
    .argument('[dlqIds...]')
    .option('--all-of <buffer>', 'all of this buffer, until one fails')
    .action(async (dlqIds: string[], { allOf }: { allOf?: string }, command: Command) => {
      if ((allOf === undefined) === (dlqIds.length === 0))
        throw new Failure(EXIT.usage, 'give ids of dead letters, or --all-of a buffer')
      const on = session(command)
      const penstock = on.penstock()
      if (allOf !== undefined) return retryAll(on, penstock, allOf)
      await each(on, dlqIds, (dlqId) => retry(on, penstock, dlqId))
    })
  dlq
    .command('rm')
    .description('delete for good, with the batch')
    .argument('<dlqIds...>')
    .action(async (dlqIds: string[], _options, command: Command) => {
      const on = session(command)
      const penstock = on.penstock()
      const query = { customerId: await penstock.customerId() }
      await each(on, dlqIds, async (dlqId) => {
        const params = { path: { dlqId }, query }
        must(`dead letter ${dlqId}`, await penstock.api.DELETE('/v1/dlq/{dlqId}', { params }))
        on.print({ dlqId, deleted: true }, printable(`deleted ${dlqId}`))
      })
    })
}

async function retry(on: Session, penstock: Penstock, dlqId: string): Promise<void> {
  const result = await penstock.api.POST('/v1/dlq/{dlqId}/retry', { params: { path: { dlqId } } })
  const done = must(`dead letter ${dlqId}`, result)
  on.print(done, printable(`delivered ${dlqId}: ${done.itemCount} items, ${done.statusCode}`))
}

/** Oldest first; a destination that refuses one refuses the others, too. */
async function retryAll(on: Session, penstock: Penstock, bufferId: string): Promise<void> {
  let retried = 0
  for await (const { dlqId } of penstock.deadLetters({ bufferId })) {
    await retry(on, penstock, dlqId)
    retried++
  }
  if (retried === 0) on.note(`${printable(bufferId)} has no dead letters`)
}

/** One refusal is the failure itself; of several each is told, and the others go on. */
async function each(on: Session, ids: readonly string[], act: (id: string) => Promise<void>): Promise<void> {
  let refused = 0
  for (const id of ids) {
    try {
      await act(id)
    } catch (error) {
      const ends =
        ids.length === 1 || !(error instanceof RefusedError) || exitCodeOf(error) === EXIT.credential
      if (ends) throw error
      refused++
      on.print({ dlqId: id, error: error.message, code: error.code }, printable(`failed ${error.message}`))
    }
  }
  if (refused > 0) throw new Failure(EXIT.partly, `${refused} of ${ids.length} failed`)
}

function list(found: readonly Dead[]): string {
  const rows = found.map((dead) => [
    dead.dlqId,
    dead.bufferId,
    isoTime(dead.createdAt),
    dead.itemCount,
    summary(dead),
  ])
  return table(['DEAD LETTER', 'BUFFER', 'SINCE', 'ITEMS', 'LAST ERROR'], rows)
}

function summary({ lastStatusCode, lastError }: Dead): string {
  return lastStatusCode === 0 ? lastError : `${lastStatusCode} ${lastError}`
}
