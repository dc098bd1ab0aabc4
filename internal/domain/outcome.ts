/** What a destination's status means (docs/reference/buffers.md, "Retries"). */
import type { ErrorClass } from './model.ts'

/** `rejected`: not retried, the batch goes to the dead letter queue at once. */
export type Outcome = 'delivered' | 'rejected' | 'retry'

/** `status` is 0 when no response arrived. */
export function outcomeOf(status: number): Outcome {
  if (status >= 200 && status <= 299) return 'delivered'
  return status >= 400 && status <= 499 ? 'rejected' : 'retry'
}

/** Error class of a response; null for 2xx. Throws for 0: without a response only the transport knows the class. */
export function errorClassOf(status: number): ErrorClass | null {
  if (status === 0) throw new RangeError('no response has no status class')
  if (outcomeOf(status) === 'delivered') return null
  if (outcomeOf(status) === 'rejected') return 'http_4xx'
  return status >= 500 && status <= 599 ? 'http_5xx' : 'http_other'
}
