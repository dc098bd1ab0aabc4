/** `fetch` that sends again what may be sent again. */
import { setTimeout as sleep } from 'node:timers/promises'
import { NoAnswerError } from './errors.ts'
import { isNamedWebhook, isRead, isRepeated, pauseOf, type RetryPolicy, retryAfterOf } from './retry.ts'

export type Fetch = (request: Request) => Promise<Response>

export interface RepeatingOptions {
  readonly retries: RetryPolicy
  /** For one attempt, its answer included; ms. */
  readonly timeoutMs: number
  readonly fetch: (request: Request) => Promise<Response>
}

/**
 * Rejects with a NoAnswerError when no attempt was answered, and with the reason of the request's own signal. `mayRepeat`:
 * which requests are safe to send twice. By default those that read, and webhooks with an id in their header.
 */
export function repeatingFetch(
  options: RepeatingOptions,
  mayRepeat = (request: Request) => isRead(request) || isNamedWebhook(request),
): Fetch {
  const { retries } = options
  return async (request) => {
    const attempts = mayRepeat(request) ? retries.attempts : 1
    for (let attempt = 1; ; attempt++) {
      const outcome = await attemptOf(request, options)
      const isLast =
        attempt >= attempts || (outcome.response && !isRepeated(request, outcome.response.status))
      const pause = isLast ? undefined : pauseOf(retries, attempt, outcome.retryAfterMs, Math.random())
      if (pause === undefined) return outcome.response ?? noAnswer(request, attempt, outcome.error)
      await paused(pause, request.signal)
    }
  }
}

async function paused(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {
    throw signal.reason
  })
}

type Outcome =
  | { response: Response; retryAfterMs?: number; error?: never }
  | { error: unknown; response?: never; retryAfterMs?: never }

/** With the whole answer: one that breaks off is none. */
async function attemptOf(request: Request, { fetch, timeoutMs }: RepeatingOptions): Promise<Outcome> {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)])
  try {
    const response = await fetch(new Request(request.clone(), { signal }))
    const body = response.status === 204 ? null : await response.arrayBuffer()
    const { status, statusText, headers } = response
    const retryAfterMs = retryAfterOf(headers, Date.now())
    return {
      response: new Response(body, { status, statusText, headers }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    }
  } catch (error) {
    if (request.signal.aborted) throw request.signal.reason
    return { error }
  }
}

function noAnswer(request: Request, attempts: number, cause: unknown): never {
  const { origin } = new URL(request.url)
  const times = attempts === 1 ? '1 attempt' : `${attempts} attempts`
  throw new NoAnswerError(`no answer from ${origin} after ${times}: ${reasonOf(cause)}`, { cause })
}

/** `fetch failed` says nothing; its cause does. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown }
  const { code, message } = cause as { code?: string; message?: string }
  return code === undefined || typeof code !== 'string' ? (message ?? String(cause)) : code
}
