/** Pure packages and shards take time and randomness as arguments: only so can they be simulated. */
import type { Source } from './sources.ts'

const AREAS = /^internal\/(group|domain|shard)\//
const FORBIDDEN =
  /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|\bset(?:Timeout|Interval|Immediate)\b|\bMath\.random\b|\brandom(?:Bytes|UUID|Int|FillSync)\b|\bgetRandomValues\b|['"](?:node:)?timers(?:\/promises)?['"]/g

/** One line a breach: file, line, and what stands there. */
export function breachesOfInjectedTime(sources: readonly Source[]): string[] {
  return sources
    .filter(({ path }) => AREAS.test(path))
    .flatMap(({ path, code }) =>
      [...code.matchAll(FORBIDDEN)].map((found) => `${path}:${lineOf(code, found.index)} uses ${found[0]}`),
    )
}

function lineOf(code: string, index: number): number {
  return code.slice(0, index).split('\n').length
}
