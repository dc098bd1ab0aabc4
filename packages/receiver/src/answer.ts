/** What a batch is answered, and what that means to the service (docs/guide/receivers.md, "Answer in time"). */
import { type Batch, BatchError } from './batch.ts'
import type { HeadersLike } from './headers.ts'
import { BodyBrokenError, BodyTooLargeError } from './raw-body.ts'
import { type Secrets, secretsOf } from './signature.ts'
import { SignatureError, type UnwrapOptions, unwrap } from './unwrap.ts'

export interface ReceiverOptions<Payload = unknown> extends UnwrapOptions {
  /** One secret, or all that are valid while a secret is replaced. */
  readonly secrets: Secrets
  /** Does the work of a batch, or stores it for later; see `OnBatch`. */
  readonly onBatch: OnBatch<Payload>
  /** Most bytes of a body. Default 4 MiB, which the batches of a buffer with default limits do not reach. */
  readonly maxBytes?: number
  /**
   * Is told why a request was not answered 200. By default stderr is: of errors of `onBatch` and of a body that was read
   * before. What anybody can cause by a request is not written there.
   */
  readonly onError?: (error: unknown) => void
}

/**
 * Resolves when the batch is taken, which answers 200. Rejects to have the whole batch sent again. The service waits 10 s
 * for the answer. `refuse` names an item of the batch that was not taken; it throws for an id that names none, and once
 * the batch was answered.
 */
export type OnBatch<Payload = unknown> = (batch: Batch<Payload>, refuse: Refuse) => unknown

export type Refuse = (messageId: string) => void

export interface Answer {
  readonly status: 200 | 400 | 401 | 413 | 500
  /** JSON: `{"failed":[]}` with 200, else `{"error":"…"}`. */
  readonly body: string
}

export const MAX_BYTES = 4 * 1024 * 1024

/**
 * The answer to a request; it never rejects. `rawBody`: reads the bytes. Throws a TypeError for options that cannot work.
 */
export function createAnswer<Payload>(
  options: ReceiverOptions<Payload>,
): (headers: HeadersLike, rawBody: () => Promise<Uint8Array>) => Promise<Answer> {
  const { onError = printUnexpected } = options
  requireUsable(options)
  return async (headers, rawBody) => {
    try {
      const batch = unwrap<Payload>(await rawBody(), headers, options.secrets, options)
      return answer(200, { failed: await taken(batch, options.onBatch) })
    } catch (error) {
      told(onError, error)
      return refusalOf(error)
    }
  }
}

function requireUsable({ secrets, onBatch, maxBytes = MAX_BYTES }: ReceiverOptions<never>): void {
  secretsOf(secrets)
  if (typeof onBatch !== 'function') throw new TypeError('onBatch must be a function')
  if (!(maxBytes > 0)) throw new TypeError('maxBytes must be a number above 0')
}

/** The ids of what was refused. */
async function taken<Payload>(batch: Batch<Payload>, onBatch: OnBatch<Payload>): Promise<readonly string[]> {
  const ids = new Set(batch.items.map(({ messageId }) => messageId))
  const refused = new Set<string>()
  let isOver = false
  try {
    await onBatch(batch, (messageId) => {
      if (isOver) throw new Error(`${messageId} is refused too late: the batch was answered`)
      if (!ids.has(messageId)) throw new RangeError(`${messageId} is no item of the batch`)
      refused.add(messageId)
    })
  } finally {
    isOver = true
  }
  return [...refused]
}

/** A caller learns what is wrong with its request, and nothing of what happened inside. */
function refusalOf(error: unknown): Answer {
  if (error instanceof SignatureError) return answer(401, { error: error.message })
  if (error instanceof BatchError) return answer(400, { error: error.message })
  if (error instanceof BodyTooLargeError) return answer(413, { error: error.message })
  return answer(500, { error: 'the batch could not be taken' })
}

function answer(status: Answer['status'], body: object): Answer {
  return { status, body: JSON.stringify(body) }
}

/** Whoever is told may fail, too; the sender gets its answer all the same. */
function told(onError: (error: unknown) => void, error: unknown): void {
  try {
    onError(error)
  } catch (failure) {
    printUnexpected(failure)
  }
}

const BY_ANYBODY = [SignatureError, BatchError, BodyTooLargeError, BodyBrokenError]

function printUnexpected(error: unknown): void {
  if (BY_ANYBODY.some((kind) => error instanceof kind)) return
  process.stderr.write(`penstock receiver: ${error instanceof Error ? error.stack : String(error)}\n`)
}
