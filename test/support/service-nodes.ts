/** The further processes that `npm start` runs, found by what they leave in its data folder (`node-process.ts`). */
import { existsSync, globSync, readFileSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { findProcesses } from '../../internal/embedded/process-identity.ts'
import type { ShardTable } from '../../internal/shard/status/shard-table.ts'

type Row = ShardTable['shards'][number]

/** Process ids of those on this folder, also of those that a killed service left behind. */
export function nodesOf(dataDir: string): number[] {
  return existsSync(dataDir) ? findProcesses(`--env-file=${join(realpathSync(dataDir), 'nodes', '/')}`) : []
}

/** Ops addresses of a service: its own, and those of the processes that it runs. */
export function opsUrlsOf(service: { opsUrl: string }, dataDir: string): string[] {
  const nodes = join(dataDir, 'nodes')
  const names = globSync(join(nodes, '*.pid')).map((file) => basename(file, '.pid'))
  const ports = names.map((name) => readFileSync(join(nodes, `${name}.ops-port`), 'utf8').trim())
  return [service.opsUrl, ...ports.map((port) => `http://127.0.0.1:${port}`)]
}

/** What `GET /shards` tells of each shard where it runs, in their order. */
export async function shardsWhereTheyRun(service: { opsUrl: string }, dataDir: string): Promise<Row[]> {
  const tables = await Promise.all(opsUrlsOf(service, dataDir).map(tableAt))
  return tables
    .flat()
    .filter(({ here }) => here)
    .sort((one, other) => one.shard - other.shard)
}

/** None of a process that runs no shards. */
async function tableAt(opsUrl: string): Promise<readonly Row[]> {
  const answer = await fetch(new URL('/shards', opsUrl))
  return answer.ok ? ((await answer.json()) as ShardTable).shards : []
}
