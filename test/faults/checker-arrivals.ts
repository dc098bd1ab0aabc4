/** Whatever was accepted arrives, and nothing of it stays behind. */
import type { Evidence, Violation } from './evidence.ts'

export function checkLost(evidence: Evidence): Violation[] {
  return evidence.history.sent.flatMap((item) => {
    if (item.answer?.status !== 202 || evidence.settled(item.n)) return []
    const byDuplicate = evidence.duplicatesOf(item).some((duplicate) => evidence.settled(duplicate.n))
    return byDuplicate ? [] : [{ rule: 'lost', detail: item }]
  })
}

export function checkBuffered({ history }: Evidence): Violation[] {
  return history.buffered === 0 ? [] : [{ rule: 'left-buffered', detail: history.buffered }]
}
