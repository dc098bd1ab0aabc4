/** Items, policies and effects of the group machine as short text. */
import type { Effect, GroupItem, GroupPolicy } from '../../internal/group/model.ts'

export interface NamedItem extends GroupItem {
  readonly name: string
}

/** The defaults of a buffer (docs/reference/buffers.md, "Fields"). */
export const defaultPolicy: GroupPolicy = {
  maxItems: 50,
  maxBytes: 262144,
  idleTimeoutMs: 5000,
  maxWaitFromFirstMs: 15000,
  maxGroupItems: 2000,
  maxGroupBytes: 5242880,
  maxAttempts: 3,
  backoff: { initialMs: 1000, maxMs: 60000, multiplier: 2 },
  minDelayBetweenFlushMs: 0,
  maxConcurrencyPerGroup: 1,
  state: 'active',
}

export function names(items: readonly NamedItem[]): string {
  return `[${items.map((item) => item.name).join(' ')}]`
}

/** One line; `label` names a batch. */
export function effectText<B>(effect: Effect<NamedItem>, label: (batch: unknown) => B): string {
  switch (effect.kind) {
    case 'seal': {
      const { batch } = effect
      return `seal ${label(batch)} ${names(batch.items)} ${batch.bytes} bytes, segment ${batch.segment}, ${batch.reason}, due ${batch.dueAt}`
    }
    case 'deliver':
      return `deliver ${label(effect.batch)} v${effect.batch.version} attempt ${effect.batch.attempt}`
    case 'record-attempt':
      return `record-attempt ${label(effect.batch)} attempt ${effect.batch.attempt} at ${effect.batch.nextAttemptAt}`
    case 'ack':
      return `ack ${label(effect.batch)}`
    case 'dead-letter':
      return `dead-letter ${label(effect.batch)} ${effect.reason}`
    case 'discard':
      return `discard ${effect.batch ? `${label(effect.batch)} ` : ''}${names(effect.items)}`
    case 'wake':
      return `wake ${effect.at}`
    case 'retire':
      return 'retire'
  }
}
