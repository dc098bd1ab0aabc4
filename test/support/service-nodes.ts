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

/** What `GET /shards` of a service tells of each shard that one of its processes runs, in their order; none while it cannot. */
export async function shardsWhereTheyRun({ opsUrl }: { opsUrl: string }): Promise<Row[]> {
  const answer = await fetch(new URL('/shards', opsUrl))
  if (!answer.ok) return []
  const { shards } = (await answer.json()) as ShardTable
  return shards.filter(({ here }) => here)
}
