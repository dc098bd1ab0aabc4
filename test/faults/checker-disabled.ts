/** Disabled buffers (docs/reference/buffers.md, "Processing"): what they hold stays where it is. */
import type { Evidence, Violation } from './evidence.ts'

/** Whatever the buffer may have been told last by then says that it is disabled: every owner knew that. */
export function checkDisabled(evidence: Evidence): Violation[] {
  return evidence.history.deliveries.flatMap((delivery) => {
    const { key, bufferId, at } = delivery
    const terms = evidence.termsOf(delivery)
    if (terms.length === 0 || terms.some(({ enabled }) => enabled)) return []
    return [{ rule: 'sent-while-disabled', detail: { key, bufferId, at } }]
  })
}
