/** When a request is sent again, and after which pause (docs/guide/senders.md, "Repeat safely"). */

export interface RetryPolicy {
  /** Attempts in all, the first included; 1 repeats nothing. */
  readonly attempts: number
  /** Pause before the second attempt, ms; it doubles from one attempt to the next. */
  readonly initialMs: number
  /** Longest pause of its own choice, ms. */
  readonly maxMs: number
  /** An answer that asks for a longer pause than this is handed to the caller, ms. */
  readonly maxRetryAfterMs: number
}

export const RETRIES: RetryPolicy = { attempts: 6, initialMs: 500, maxMs: 16_000, maxRetryAfterMs: 120_000 }

/** Perhaps below a path of a proxy. */
const INGEST = /\/v1\/ingest\/[^/]+\/[^/]+$/
const ID_HEADER = 'x-idempotency-key'
/** Reading may also be told to slow down; a webhook that is answered 429 lacks credits, which no pause brings. */
const REPEATED_READS = [408, 429, 500, 502, 503, 504]
const REPEATED_WEBHOOKS = [408, 500, 502, 503, 504]

/** Reading changes nothing, and a webhook with an id is stored once, however often it comes. */
export function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** A webhook that names its id in the header. */
export function isNamedWebhook({ method, url, headers }: Request): boolean {
  return method === 'POST' && INGEST.test(new URL(url).pathname) && headers.has(ID_HEADER)
}

/** Whether the same request may be answered otherwise later. */
export function isRepeated(request: Request, status: number): boolean {
  return (isRead(request) ? REPEATED_READS : REPEATED_WEBHOOKS).includes(status)
}

/**
 * The pause behind attempt number `attempt` (from 1), ms; undefined when the answer asks for more than the policy allows.
 * `random`: 0 to 1, spreads the attempts of many senders. No pause is shorter than the answer asks for.
 */
export function pauseOf(
  policy: RetryPolicy,
  attempt: number,
  retryAfterMs: number | undefined,
  random: number,
): number | undefined {
  if (retryAfterMs !== undefined) {
    return retryAfterMs > policy.maxRetryAfterMs ? undefined : retryAfterMs * (1 + random / 4)
  }
  const whole = Math.min(policy.initialMs * 2 ** (attempt - 1), policy.maxMs)
  return whole * (0.5 + random / 2)
}

/** What `Retry-After` asks for, ms: seconds, or a date. undefined: nothing, or no such value. `now`: Unix ms. */
export function retryAfterOf(headers: Headers, now: number): number | undefined {
  const value = headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(value)) return Number(value) * 1_000
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
