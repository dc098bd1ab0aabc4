/** What the package offers. */
export type { Answer, OnBatch, ReceiverOptions, Refuse } from './answer.ts'
export {
  type Batch,
  BatchError,
  type BatchOptions,
  type BatchSource,
  type BatchWindow,
  type Item,
  parseBatch,
} from './batch.ts'
export { createHandler, type Handler, type KoaContext } from './handler.ts'
export type { HeadersLike } from './headers.ts'
export { BodyBrokenError, BodyReadError, BodyTooLargeError, readRawBody } from './raw-body.ts'
export { type Secrets, type SignatureOptions, sign, verify } from './signature.ts'
export { SignatureError, type UnwrapOptions, unwrap } from './unwrap.ts'
