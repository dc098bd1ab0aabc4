/** What an error of the client says about the server: away, or in the middle of something of ours. */

import postgres from 'postgres'
import { ServiceError } from '../domain/errors.ts'

/** Codes of the client and the network. */
const CLIENT_CODES = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/** SQLSTATE: shutting down, crashed, starting up, too many connections, waited too long, read-only after a fail-over. */
const SERVER_CODES = new Set(['57P01', '57P02', '57P03', '53300', '57014', '55P03', '25006'])

/** Whether the same call may succeed once the server is back or less busy. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false
  const codes = error instanceof postgres.PostgresError ? SERVER_CODES : CLIENT_CODES
  return codes.has(String(error.code))
}

type Operation = (...input: unknown[]) => unknown

/** The port with every rejection because of an absent server turned into the 503 that callers are answered. */
export function refusingWhenAway<Port extends object>(port: Port): Port {
  const guarded = Object.entries(port as Record<string, Operation>).map(([name, operation]) => [
    name,
    async (...input: unknown[]) => {
      try {
        return await operation(...input)
      } catch (error) {
        throw isAway(error) ? new ServiceError('databaseUnavailable', {}, { cause: error }) : error
      }
    },
  ])
  return Object.fromEntries(guarded) as Port
}
