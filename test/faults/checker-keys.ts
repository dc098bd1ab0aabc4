/** One key, one body; one item, one key. */
import type { Evidence, Violation } from './evidence.ts'

export function checkBodies(evidence: Evidence): Violation[] {
  const bodies = new Map<string, string>()
  const keys = new Map<number, string>()
  const violations: Violation[] = []
  for (const { key, bodyHash, items } of evidence.batches) {
    if ((bodies.get(key) ?? bodyHash) !== bodyHash) violations.push({ rule: 'two-bodies', detail: key })
    bodies.set(key, bodyHash)
    for (const { n } of items) {
      const first = keys.get(n) ?? key
      if (first !== key) violations.push({ rule: 'two-keys', detail: { n, keys: [first, key] } })
      keys.set(n, first)
    }
  }
  return violations
}
