/**
 * The Postgres client (docs/architecture/protocol.md, "Postgres"). One pool a process; every server-side wait is
 * bounded, so that neither a lock nor a forgotten transaction outlives the lease of the node that holds it.
 */

import postgres from 'postgres'
import { socketsThatWait } from './watched-socket.ts'

export type Database = postgres.Sql<{ bigint: number }>
export type Transaction = postgres.TransactionSql<{ bigint: number }>
/** What one SQL operation runs on: the pool, or a transaction of its caller. */
export type Queryable = Database | Transaction

export interface ConnectionOptions {
  /** Connections at most, default 10. */
  max?: number
  /** `application_name` as pg_stat_activity shows it. */
  name?: string
  /** Server-side bounds in ms; 0 switches one off. */
  statementTimeoutMs?: number
  lockTimeoutMs?: number
  idleInTransactionTimeoutMs?: number
}

/** The server's `bigint` as a number: counters, credits and versions stay far below 2^53, or it is an error. */
export function parseBigint(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint beyond 2^53: ${text}`)
  return value
}

const bigint = {
  to: 20,
  from: [20],
  serialize: (value: number): string => value.toString(),
  parse: parseBigint,
}

/** What a network may take on top of the server's own bound of a statement, ms. */
const NETWORK_MS = 4_000

/**
 * Connects lazily; a query rejects within seconds while the server cannot be reached, and when the network falls
 * silent. `end()` closes. The driver is patched (`patches/`): as published, a connection that breaks at the wrong
 * moment ends the process, or never sends anything again.
 */
export function connect(databaseUrl: string, options: ConnectionOptions = {}): Database {
  const { statementTimeoutMs = 4_000 } = options
  return postgres(databaseUrl, {
    // What may take any time must not be cut off.
    ...(statementTimeoutMs > 0 && { socket: socketsThatWait(statementTimeoutMs + NETWORK_MS) }),
    max: options.max ?? 10,
    connect_timeout: 3,
    idle_timeout: 60,
    keep_alive: 10,
    // Grows to 1 s only: after an outage every node is back at once.
    backoff: (retries: number) => Math.min(1, 0.05 * 2 ** retries),
    onnotice: () => {},
    types: { bigint },
    connection: {
      application_name: options.name ?? 'penstock',
      TimeZone: 'UTC',
      statement_timeout: statementTimeoutMs,
      lock_timeout: options.lockTimeoutMs ?? 3_000,
      idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs ?? 4_000,
      tcp_keepalives_idle: 10,
      tcp_keepalives_interval: 5,
      tcp_keepalives_count: 3,
      tcp_user_timeout: 10_000,
    },
  })
}

/** SQLSTATE of an error that the server answered, undefined for any other. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined
}

export const FOREIGN_KEY_VIOLATION = '23503'
