/** Whether the shards of the further processes of `npm start` run: their ops ports tell. */
import type { ShardTable } from '../../internal/shard/status/shard-table.ts'

/** Shorter than the deadline of a check of `/health`, so that the reason is known, ms. */
const ANSWER_MS = 1_500

/** Resolves when each process answers and has no shard that it should run and does not. Rejects with the first reason. */
export async function refuseTroublesAt(opsUrls: readonly string[]): Promise<void> {
  await Promise.all(opsUrls.map(refuseTroubles))
}

async function refuseTroubles(opsUrl: string): Promise<void> {
  const answer = await fetch(new URL('/shards', opsUrl), { signal: AbortSignal.timeout(ANSWER_MS) })
  if (!answer.ok) throw new Error(`${opsUrl}: ${answer.status}`)
  const { shards } = (await answer.json()) as ShardTable
  const troubled = shards.find(({ trouble }) => trouble !== null)
  if (troubled) throw new Error(`shard ${troubled.shard}: ${troubled.trouble}`)
}
