/** Why no response arrived, in classes (docs/architecture/protocol.md, "Delivery"). */
import type { ErrorClass } from '../domain/model.ts'
import { isScarcity } from '../runtime/scarcity.ts'
import { LookupError } from './dns/failure.ts'
import { BlockedDestinationError, HandshakeError } from './guard.ts'

/** The whole attempt's deadline passed. */
export class AttemptDeadlineError extends Error {
  override readonly name = 'AttemptDeadlineError'
}

/** The destination sent informational heads, and no final one. */
export class TooManyHeadsError extends Error {
  override readonly name = 'TooManyHeadsError'
}

/** The client is being closed. */
export class ClosingError extends Error {
  override readonly name = 'ClosingError'
}

export interface Failure {
  errorClass: ErrorClass
  /** Short, without addresses and secrets: it is stored and shown. */
  error: string
}

export function failureOf(error: Error): Failure {
  if (error instanceof AttemptDeadlineError) return { errorClass: 'timeout', error: error.message }
  if (error instanceof ClosingError) return { errorClass: 'connection', error: error.message }
  if (error instanceof BlockedDestinationError)
    return { errorClass: 'blocked_destination', error: error.message }
  if (error instanceof LookupError) {
    const what = error.silent
      ? 'the servers of the host name do not answer'
      : 'the host name does not resolve'
    return { errorClass: 'dns', error: `${what} (${error.code})` }
  }
  return failureOfCode(error, codeOf(error instanceof HandshakeError ? error.cause : error))
}

/** All that is called before a request is sent; undici opens its parser with the first connection of a process. */
const BEFORE_SENDING: readonly (string | undefined)[] = ['connect', 'open']

/** Whether there was no socket for the request, to one of the addresses at least: the destination has seen nothing. */
export function lacksSocket(error: Error): boolean {
  if (error instanceof AggregateError) return error.errors.some(lacksSocket)
  const { syscall }: NodeJS.ErrnoException = error
  return BEFORE_SENDING.includes(syscall) && isScarcity(error)
}

const texts: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection closed while sending',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  UND_ERR_INVALID_ARG: 'the request cannot be sent as configured',
  UND_ERR_SOCKET: 'connection closed before the response',
  TooManyHeadsError: 'too many informational responses',
  UND_ERR_HEADERS_OVERFLOW: 'the head of the response is too large',
}

function failureOfCode(error: Error, code: string): Failure {
  if (error instanceof HandshakeError || /^ERR_(SSL|TLS)_/.test(code)) {
    return { errorClass: 'tls', error: `TLS failed (${code})` }
  }
  if (code === 'ETIMEDOUT') return { errorClass: 'timeout', error: 'connecting timed out (ETIMEDOUT)' }
  if (code.startsWith('HPE_'))
    return { errorClass: 'connection', error: `the response is not HTTP (${code})` }
  return { errorClass: 'connection', error: `${texts[code] ?? 'connection failed'} (${code})` }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : error instanceof Error ? error.name : 'unknown'
}
