/**
 * Which errors only say that the database cannot be asked now: the caller is told to try again (503), and
 * nobody has to look for a bug.
 */
import { DeadlineError } from '../runtime/deadline.ts'
import { sqlState } from './connection.ts'

/** Of the client and the network. */
const CONNECTION_CODES: ReadonlySet<unknown> = new Set([
  ...['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECTION_ENDED', 'CONNECT_TIMEOUT'],
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
])

/**
 * SQLSTATE classes: connection exceptions, too few resources, the operator intervenes (shutdown, restart,
 * time-outs), serialisation; and the time-outs of locks and idle transactions.
 */
const OUTAGE_STATES = /^(08|53|57|40)|^(55P03|25P03)$/

export function isOutage(error: unknown): boolean {
  if (error instanceof DeadlineError) return true
  const state = sqlState(error)
  if (state !== undefined) return OUTAGE_STATES.test(state)
  return error instanceof Error && 'code' in error && CONNECTION_CODES.has(error.code)
}
