/** `tail`: new dead letters, or new audit records, as they come. */
import { setTimeout as sleep } from 'node:timers/promises'
import { must, type Penstock, type Schemas } from '@penstock-local/client'
import { Argument, type Command } from 'commander'
import { collect } from '../collect.ts'
import { EXIT } from '../exit.ts'
import { exitCodeOf } from '../failure.ts'
import { DISORDER_MS, Followed } from '../follow.ts'
import { wholeNumber } from '../numbers.ts'
import { isoTime, printable } from '../output.ts'
import type { Session } from '../session.ts'
import { ending } from './listen.ts'

type Dead = Schemas['DlqItem']
type AuditRecord = Schemas['AuditRecord']

interface TailOptions {
  readonly buffer?: string
  readonly lines: number
  readonly every: number
}

interface Feed<T> {
  readonly followed: Followed<T>
  /** Newest first. `since`: all from this moment on, Unix ms; null: the first reading, which may tell what is there already. */
  read(since: number | null): Promise<T[]>
  line(entry: T): string
}

/** Of `--lines`. */
const MOST = 500

export function addTailCommand(program: Command, session: (command: Command) => Session): void {
  program
    .command('tail')
    .description('follow dead letters, or audit records, until a signal ends it')
    .addArgument(new Argument('[what]', 'what to follow').choices(['dlq', 'audit']).default('dlq'))
    .option('--buffer <id>', 'only dead letters of this buffer')
    .option('-n, --lines <n>', 'so many that are there already', wholeNumber(0, MOST), 10)
    .option('--every <s>', 'ask again after so many seconds', wholeNumber(1, 3_600), 2)
    .addHelpText('after', HELP)
    .action(async (what: string, options: TailOptions, command: Command) => {
      const on = session(command)
      const penstock = on.penstock()
      const ended = new AbortController()
      void ending(on).then(() => ended.abort())
      if (what === 'audit') await follow(on, auditRecords(penstock), options, ended.signal)
      else await follow(on, deadLetters(penstock, options), options, ended.signal)
    })
}

const HELP = `
It asks the service again and again. While the service is away it says so, and goes on.

Examples:
  $ penstock tail --buffer orders
  $ penstock tail audit --json
`

async function follow<T>(
  on: Session,
  feed: Feed<T>,
  { lines, every }: TailOptions,
  ended: AbortSignal,
): Promise<void> {
  let isFirst = true
  while (!ended.aborted) {
    try {
      const found = feed.followed.take(await feed.read(isFirst ? null : feed.followed.horizon))
      for (const entry of isFirst ? found.slice(found.length - Math.min(lines, found.length)) : found)
        on.print(entry, printable(feed.line(entry)))
      isFirst = false
    } catch (error) {
      if (exitCodeOf(error) !== EXIT.unavailable) throw error
      on.note((error as Error).message)
    }
    await sleep(every * 1_000, undefined, { signal: ended }).catch(() => {})
  }
}

function deadLetters(penstock: Penstock, { buffer, lines }: TailOptions): Feed<Dead> {
  return {
    followed: new Followed(({ dlqId: id, createdAt }) => ({ id, createdAt })),
    /** At first as many as are told, and what may come late beside them. */
    async read(since) {
      const filter = buffer === undefined ? {} : { bufferId: buffer }
      const found: Dead[] = []
      for await (const dead of penstock.newestDeadLetters(filter)) {
        const from = since ?? (found.length <= lines ? 0 : found[0]!.createdAt - DISORDER_MS)
        if (dead.createdAt < from) break
        found.push(dead)
      }
      return found
    },
    line: (dead) => {
      const { dlqId, bufferId, groupKey, createdAt, itemCount, reason, lastStatusCode, lastError } = dead
      return `${isoTime(createdAt)} ${dlqId} ${bufferId} ${groupKey}: ${itemCount} items, ${reason}, ${lastStatusCode} ${lastError}`
    },
  }
}

function auditRecords(penstock: Penstock): Feed<AuditRecord> {
  return {
    followed: new Followed(({ auditId: id, createdAt }) => ({ id, createdAt })),
    /** At first the newest page tells enough. */
    async read(since) {
      if (since !== null) return collect(penstock.auditRecords({ since }))
      const result = await penstock.api.GET('/v1/admin/audit', { params: { query: { limit: 100 } } })
      return must('audit records', result).records
    },
    line: ({ createdAt, event, actor, method, route, status, count }) =>
      `${isoTime(createdAt)} ${event} ${actor.type} ${method ?? ''} ${route ?? ''} ${status ?? ''} ×${count}`,
  }
}
