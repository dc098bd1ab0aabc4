/** How much one batch holds (docs/reference/buffers.md, "Processing"). */
import type { Evidence, Violation } from './evidence.ts'
import type { Delivery } from './history.ts'

export function checkLimits(evidence: Evidence): Violation[] {
  return [...evidence.attempts.values()].flatMap(([first]) => checkBatch(evidence, first!))
}

/** Sealed at some time before it came: any limit that there was until then may have closed it. */
function checkBatch(evidence: Evidence, { key, bufferId, items, at }: Delivery): Violation[] {
  const terms = evidence.told.until(bufferId, at)
  const maxItems = Math.max(...terms.map((each) => each.maxItems))
  const maxBytes = Math.max(...terms.map((each) => each.maxBytes))
  const bytes = items.reduce((sum, { payloadBytes }) => sum + payloadBytes, 0)
  return [
    ...(items.length > maxItems
      ? [{ rule: 'too-many-items', detail: { key, items: items.length, maxItems } }]
      : []),
    ...(bytes > maxBytes && items.length > 1
      ? [{ rule: 'too-many-bytes', detail: { key, bytes, maxBytes, items: items.length } }]
      : []),
  ]
}
