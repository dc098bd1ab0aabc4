/** What the audit needs of Postgres and of telemetry. Every call of a store rejects while Postgres is away. */
import type { AuditRecord } from '../domain/audit.ts'
import type { ApiKeyRecord } from '../domain/model.ts'

/** A place in the list of a customer: newest first, by time and then by id. */
export interface AuditPlace {
  /** Unix ms. */
  readonly createdAt: number
  /** UUID. */
  readonly auditId: string
}

export interface AuditStore {
  /** In one statement. Records that are stored already are passed over. */
  insert(records: readonly AuditRecord[]): Promise<void>
  /** The newest `limit` records of the customer behind `before` that are not older than `since`, Unix ms. */
  list(customerId: string, page: { since: number; before: AuditPlace; limit: number }): Promise<AuditRecord[]>
  /** Removes `limit` records at most that are older than this moment, Unix ms; answers how many. */
  removeOlder(before: number, limit: number): Promise<number>
}

/** A key that was revoked and refused a moment ago; undefined: the secret is no key of anybody. */
export type RevokedKey = (secret: string) => Pick<ApiKeyRecord, 'keyId' | 'customerId'> | undefined

/** Where a credential was presented. */
export type AuthenticationPlace = 'management' | 'ingest'

/** What was presented: `none` is a management request without any. */
export type PresentedCredential = 'key' | 'token' | 'none'

/**
 * Why a record is missing: more than a customer may have kept, more than this process holds while Postgres is away,
 * not taken by Postgres, or not written before the process had to end.
 */
export type AuditLoss = 'limit' | 'full' | 'refused' | 'stopped'

export interface AuditTelemetry {
  /** A credential was not good, whoever's it is. */
  authenticationFailed(place: AuthenticationPlace, credential: PresentedCredential): void
  written(records: number): void
  lost(reason: AuditLoss, records: number): void
  /** Told once a minute at most: so many records were lost since the last time. */
  leftOut(records: number): void
  /** Postgres cannot be asked; records wait. Told once an outage. */
  waits(error: unknown): void
}
