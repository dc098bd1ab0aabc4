/**
 * `npm run shards -- [ops address …]`: who owns each shard, as the journals and the leases tell, and what the
 * nodes behind these addresses tell of theirs. `npm run shards -- --release <shard>`: its owner lets go.
 */
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { standingLeases } from '../../internal/nats/leases/standing-leases.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { ShardTable } from '../../internal/shard/status/shard-table.ts'
import { forceRelease, surveyShards } from '../../internal/shard/status/survey.ts'
import { readConfig } from '../config/config.ts'
import { type CommandLogs, openCommandLogs } from '../wiring/command-logs.ts'
import { surveyLines, tableLines } from './report.ts'

const USAGE = 'usage: npm run shards -- [http://ops-address …] | --release <shard>\n'
const ANSWER_MS = 5_000

async function show({ connection, broker, shards }: CommandLogs, addresses: string[]): Promise<void> {
  const { leases } = await standingLeases(connection, systemClock())
  process.stdout.write(surveyLines(await surveyShards(broker, shards, leases), Date.now()))
  if (addresses.length === 0) return
  const answers = await Promise.all(addresses.map(ask))
  const tables = answers.flatMap((answer) => (typeof answer === 'string' ? [] : [answer]))
  process.stdout.write(`\n${tableLines(tables)}`)
  for (const answer of answers) {
    if (typeof answer !== 'string') continue
    process.stderr.write(`${answer}\n`)
    process.exitCode = 1
  }
}

/** A line that says why there is no table. */
async function ask(address: string): Promise<ShardTable | string> {
  try {
    const answer = await fetch(new URL('/shards', address), { signal: AbortSignal.timeout(ANSWER_MS) })
    if (answer.ok) return (await answer.json()) as ShardTable
    return `${address}: ${answer.status} ${(await answer.text()).trim()}`
  } catch (error) {
    const { cause, message } = error as Error
    return `${address}: ${cause instanceof Error ? cause.message : message}`
  }
}

async function release({ broker, shards }: CommandLogs, text: string): Promise<void> {
  const shard = Number(text)
  if (!/^\d+$/.test(text) || shard >= shards) throw new Error(`--release: must be 0 to ${shards - 1}`)
  const { epoch } = await forceRelease(broker, shard, randomUUID(), systemClock())
  process.stdout.write(`shard ${shard} is released, by the claim ${epoch}; a node takes it within seconds\n`)
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { release: { type: 'string' } },
    allowPositionals: true,
  })
  if (values.release !== undefined && positionals.length > 0) throw new Error(USAGE.trim())
  const logs = await openCommandLogs(readConfig(process.env, 'penstock'))
  try {
    if (values.release === undefined) await show(logs, positionals)
    else await release(logs, values.release)
  } finally {
    await logs.close()
  }
}

try {
  await main()
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException
  process.stderr.write(code?.startsWith('ERR_PARSE_ARGS') ? USAGE : `${message}\n`)
  process.exitCode = code?.startsWith('ERR_PARSE_ARGS') ? 2 : 1
}
