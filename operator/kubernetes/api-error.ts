/** How the API server refused, or that it gave no answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** HTTP status, or that of an in-band error of a watch; 0: no answer, or not the end of one. */
  readonly status: number
  /** Of a Retry-After header, ms. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, status: number, options: ErrorOptions & { retryAfterMs?: number } = {}) {
    super(message, options)
    this.status = status
    this.retryAfterMs = options.retryAfterMs
  }
}

export function hasStatus(error: unknown, ...statuses: number[]): boolean {
  return error instanceof ApiError && statuses.includes(error.status)
}

/** The part of a Status object that tells something; the API server repeats no content of Secrets in it. */
interface StatusObject {
  message?: string
  reason?: string
  code?: number
}

/** The refusal that `body` of an answer with `status` speaks of. */
export function refusal(
  what: string,
  status: number,
  body: string,
  retryAfter: string | undefined,
): ApiError {
  const { message, reason } = statusOf(body)
  const seconds = Number(retryAfter)
  const text = `${what}: ${status} ${message ?? reason ?? 'without a reason'}`
  return new ApiError(text, status, Number.isFinite(seconds) ? { retryAfterMs: seconds * 1_000 } : {})
}

/** The error that a watch delivered among its events. */
export function inBandError(what: string, object: unknown): ApiError {
  const { code = 500, message, reason } = object as StatusObject
  return new ApiError(`${what}: ${code} ${message ?? reason ?? 'without a reason'}`, code)
}

function statusOf(body: string): StatusObject {
  try {
    const parsed: unknown = JSON.parse(body)
    return typeof parsed === 'object' && parsed !== null ? parsed : {}
  } catch {
    // Not the API server itself but something before it, or an answer that was cut.
    return {}
  }
}
