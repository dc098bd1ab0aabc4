/** What an attempt comes to, by what its exchange answered. */
import type { ErrorClass } from '../domain/model.ts'
import { errorClassOf, outcomeOf } from '../domain/outcome.ts'
import type { AttemptResult } from './attempt.ts'
import { LookupWithheldError } from './dns/failure.ts'
import type { Answer } from './exchange.ts'
import { failureOf, lacksSocket } from './failure.ts'

const NO_SOCKET = 'this process has no file descriptor or memory for another connection'

export function resultOf({ status, error, body }: Answer, durationMs: number): AttemptResult {
  if (error instanceof LookupWithheldError) return unsent(error.message, 'dns')
  if (error && lacksSocket(error)) return unsent(NO_SOCKET, 'connection')
  if (error) return failed(error, durationMs)
  const outcome = outcomeOf(status)
  const hint = status >= 300 && status < 400 ? ' (redirects are not followed)' : ''
  return {
    delivered: outcome === 'delivered',
    retryable: outcome === 'retry',
    statusCode: status,
    errorClass: errorClassOf(status),
    error: outcome === 'delivered' ? null : `the destination answered ${status}${hint}`,
    durationMs,
    responseBody: body,
  }
}

/** Without a response an attempt is always retried. */
export function failed(error: Error, durationMs: number): AttemptResult {
  const nothing = { delivered: false, retryable: true, statusCode: 0, responseBody: null }
  return { ...nothing, ...failureOf(error), durationMs }
}

/** Nothing was sent, for a reason of ours. */
export function unsent(reason: string, errorClass: ErrorClass = 'timeout'): AttemptResult {
  const nothing = { delivered: false, retryable: true, statusCode: 0, responseBody: null, durationMs: 0 }
  return { ...nothing, errorClass, error: `nothing was sent: ${reason}`, unsent: true }
}
