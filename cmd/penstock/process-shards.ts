/** The shards of the further processes of `npm start`: their ops ports tell. */
import type { ShardRow, ShardTable } from '../../internal/shard/status/shard-table.ts'

/** Shorter than the deadline of a check of `/health`, so that the reason is known, ms. */
const CHECK_MS = 1_500
/** Longer than a process waits for a broker that is silent, and shorter than `npm run shards` waits, ms. */
const TABLE_MS = 4_000

/** Resolves when each process answers and has no shard that it should run and does not. Rejects with the first reason. */
export async function refuseTroublesAt(opsUrls: readonly string[]): Promise<void> {
  await Promise.all(opsUrls.map(refuseTroubles))
}

/**
 * The table of a process that runs no shards, with each shard as the process tells that runs it, or tries to. `held` is
 * false as soon as one of them has no lease. Rejects, naming the process, when one of them does not answer.
 */
export async function tableWith(own: ShardTable, opsUrls: readonly string[]): Promise<ShardTable> {
  const tables = await Promise.all(opsUrls.map((opsUrl) => tableAt(opsUrl, TABLE_MS)))
  const running = tables.flatMap(({ shards }) => shards.filter(({ here }) => here))
  const byShard = Map.groupBy(running, ({ shard }) => shard)
  const held = [own, ...tables].every((table) => table.held)
  // Of two that have a shard while it changes hands, both are shown.
  return {
    ...own,
    held,
    shards: own.shards.flatMap((row): readonly ShardRow[] => byShard.get(row.shard) ?? [row]),
  }
}

async function refuseTroubles(opsUrl: string): Promise<void> {
  const { shards } = await tableAt(opsUrl, CHECK_MS)
  const troubled = shards.find(({ trouble }) => trouble !== null)
  if (troubled) throw new Error(`shard ${troubled.shard}: ${troubled.trouble}`)
}

async function tableAt(opsUrl: string, waitMs: number): Promise<ShardTable> {
  try {
    const answer = await fetch(new URL('/shards', opsUrl), { signal: AbortSignal.timeout(waitMs) })
    if (!answer.ok) throw new Error(String(answer.status))
    return (await answer.json()) as ShardTable
  } catch (error) {
    throw new Error(`${opsUrl}: ${reasonOf(error)}`, { cause: error })
  }
}

/** `fetch` itself says no more than that it failed. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code || message : message
}
