/**
 * `npm run repair -- --shard <n> [--renew] [--yes]`: makes the positions of a shard unambiguous again after the broker
 * lost messages (docs/architecture/repair.md). `--all`: of every shard. `--renew`: also where nothing tells of
 * a loss, because logs and Postgres came back from one backup. Without `--yes` it says what it would do.
 */
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createJournalCopies } from '../../internal/nats/log/journal-copies.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { createRemembered } from '../../internal/postgres/remembered.ts'
import { Semaphore } from '../../internal/runtime/semaphore.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { examine, needsRepair } from '../../internal/shard/repair/examination.ts'
import type { RepairOptions } from '../../internal/shard/repair/ports.ts'
import { repairShard } from '../../internal/shard/repair/repair.ts'
import { type Config, readConfig } from '../config/config.ts'
import { syncLagMs } from '../config/sync.ts'
import { type CommandLogs, openCommandLogs } from '../wiring/command-logs.ts'
import { findingLines } from './report.ts'
import { openServers } from './servers.ts'
import { refuseOwned } from './standing.ts'

const USAGE = 'usage: npm run repair -- --shard <number> | --all [--renew] [--yes]\n'
/** What was found is not repaired yet. */
const NEEDS_REPAIR = 3
/** Shards. What the fold holds of each is in memory meanwhile, and they wait together for the disk of the broker. */
const AT_ONCE = 8

interface Arguments {
  /** null: all. */
  readonly shard: number | null
  readonly renew: boolean
  readonly yes: boolean
}

function argumentsOf(args: string[]): Arguments | undefined {
  try {
    const flag = { type: 'boolean', default: false } as const
    const options = { shard: { type: 'string' }, all: flag, renew: flag, yes: flag } as const
    const { shard, all, renew, yes } = parseArgs({ args, options }).values
    if (all === (shard !== undefined)) return undefined
    if (shard !== undefined && !/^\d{1,4}$/.test(shard)) return undefined
    return { shard: shard === undefined ? null : Number(shard), renew, yes }
  } catch {
    return undefined
  }
}

async function run(given: Arguments, config: Config): Promise<void> {
  const servers = await openServers(config)
  try {
    const logs = await openCommandLogs(config, servers.natsUrls)
    try {
      await repair(given, config, logs, servers.databaseUrl, servers.own)
    } finally {
      await logs.close()
    }
  } finally {
    await servers.stop()
  }
}

/** `alone`: the servers run for this command only, so nobody else can own a shard. */
async function repair(
  given: Arguments,
  { replicas, sync }: Config,
  { connection, broker, shards }: CommandLogs,
  databaseUrl: string,
  alone: boolean,
): Promise<void> {
  if (given.shard !== null && given.shard >= shards) throw new Error(`--shard: must be 0 to ${shards - 1}`)
  const numbers = given.shard === null ? Array.from({ length: shards }, (_, shard) => shard) : [given.shard]
  const clock = systemClock()
  if (!alone) await refuseOwned(connection, broker, clock, numbers)
  const db = connect(databaseUrl, { max: 1 })
  const copies = createJournalCopies({ connection, clock, replicas })
  try {
    const lag = syncLagMs(sync)
    const ports = {
      broker,
      clock,
      copies,
      remembered: createRemembered(db),
      renew: given.renew,
      syncLagMs: lag,
    }
    const slots = new Semaphore(AT_ONCE)
    const endOf = async (shard: number): Promise<string | Error> => {
      const options = {
        ...ports,
        shard,
        boot: randomUUID(),
        onWhole: () => (alone ? undefined : sayWhole(shard, lag)),
      }
      await slots.acquire()
      try {
        return given.yes ? await carryOut(options) : await explain(options)
      } catch (error) {
        return error as Error
      } finally {
        slots.release()
      }
    }
    for (const end of numbers.map(endOf)) tell(await end)
  } finally {
    copies.close()
    await db.end({ timeout: 2 })
  }
}

function tell(end: string | Error): void {
  if (typeof end === 'string') process.stdout.write(end)
  else {
    process.stderr.write(`${end.message}\n`)
    process.exitCode = 1
  }
}

/** `lagMs` as `syncLagMs`. */
function sayWhole(shard: number, lagMs: number): void {
  if (lagMs === 0) return
  const text = `Shard ${shard}: a node may run it from now on. Its old journal is kept for ${lagMs / 1_000} s, until the broker has the new one on disk.\n`
  process.stdout.write(text)
}

async function explain(options: RepairOptions): Promise<string> {
  const findings = await examine(options)
  if (!needsRepair(findings)) return findingLines(findings)
  // Not over an error.
  process.exitCode ??= NEEDS_REPAIR
  return `${findingLines(findings)}Nothing was changed: add --yes to repair it.\n`
}

async function carryOut(options: RepairOptions): Promise<string> {
  const findings = await repairShard(options)
  if (findings === null) return findingLines(await examine(options))
  return `${findingLines(findings)}Repaired: a node may run it.\n`
}

const given = argumentsOf(process.argv.slice(2))
if (given === undefined) {
  process.stderr.write(USAGE)
  process.exitCode = 2
} else {
  try {
    await run(given, readConfig(process.env, 'penstock'))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
