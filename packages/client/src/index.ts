/** What the package offers. */
export type { components, operations, paths } from './api.ts'
export { NoAnswerError, RefusedError } from './errors.ts'
export {
  createPenstock,
  type Ingested,
  must,
  type Penstock,
  type PenstockOptions,
  type Place,
  type Schemas,
} from './penstock.ts'
export { RETRIES, type RetryPolicy } from './retry.ts'
export type { WebhookOptions, WebhookSigning } from './webhook.ts'
