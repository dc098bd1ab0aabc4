/** Who writes into a journal. */
import type { Evidence, Violation } from './evidence.ts'

export function checkFencing({ history }: Evidence): Violation[] {
  const claims = new Map<number, { epoch: number; boot: string }>()
  const violations: Violation[] = []
  for (const commit of history.commits) {
    const { shard, seq, boot, epoch } = commit
    const claim = claims.get(shard)
    if (commit.records.includes('epoch')) claims.set(shard, { epoch: seq, boot })
    else if (claim && (claim.epoch !== epoch || claim.boot !== boot))
      violations.push({ rule: 'stale-owner', detail: { commit, claim } })
  }
  return violations
}
