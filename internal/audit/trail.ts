/**
 * The audit as a process writes it (docs/decisions/0039-what-the-audit-keeps.md): it is told of changes and of refused
 * credentials, and decides what of them is kept. Nothing here waits or throws, so no request is later or fails for it.
 */
import type { AuditOrigin, AuditRecord, AuditTarget } from '../domain/audit.ts'
import { boundedText } from '../domain/audit.ts'
import type { Principal } from '../domain/principal.ts'
import type { Action } from '../domain/roles.ts'
import { type AllowanceOptions, createAllowances, kindOf, type RecordKind } from './allowances.ts'
import { createLeftOut } from './left-out.ts'
import type {
  AuditLoss,
  AuditStore,
  AuditTelemetry,
  AuthenticationPlace,
  PresentedCredential,
  RevokedKey,
} from './ports.ts'
import { createRepetitions } from './repetitions.ts'
import { createAuditWriter } from './writer.ts'

/** What was asked for, and from where. */
export interface Asked {
  readonly method: string | null
  /** The path as the route table has it. */
  readonly route: string
  readonly target: AuditTarget
  readonly from: AuditOrigin
}

/** By a caller whose credential was good. */
export interface Change extends Asked {
  readonly principal: Principal
  /** What the caller needs the right to. */
  readonly action: Action
  /** HTTP status of its answer. */
  readonly status: number
}

/** A credential that was not good. */
export interface RefusedCredential extends Asked {
  readonly place: AuthenticationPlace
  readonly credential: PresentedCredential
  /** Of a key: the secret as it was presented. It is looked up, and not kept. */
  readonly secret?: string
}

export interface AuditTrail {
  changed(change: Change): void
  refused(refused: RefusedCredential): void
  /** Writes what it has, for 3 s at most; call it when no request can come any more. */
  stop(): Promise<void>
}

export interface AuditTrailOptions extends AllowanceOptions {
  readonly store: Pick<AuditStore, 'insert'>
  readonly telemetry: AuditTelemetry
  readonly revokedKey: RevokedKey
  /** A new UUID. */
  readonly newId: () => string
  /** Whether an error of the store only says that Postgres cannot be asked now. */
  readonly isOutage: (error: unknown) => boolean
}

/** Of an issuer and a subject, characters. */
const MAX_CLAIM = 255

interface RefusedKey extends Asked {
  readonly customerId: string
  readonly keyId: string
  readonly createdAt: number
}

const UNAUTHORIZED = 401

export function createAuditTrail(options: AuditTrailOptions): AuditTrail {
  const { store, clock, telemetry, revokedKey, newId, isOutage } = options
  const allow = createAllowances(options)
  const writer = createAuditWriter({ store, clock, telemetry, isOutage, onLost: writerLost })
  const leftOut = createLeftOut({
    clock,
    onTold: telemetry.leftOut,
    write: (customerId, count) => writer.add(noticeOf(customerId, count)),
  })
  const refusedKeys = createRepetitions<RefusedKey>({
    clock,
    keep: (key, count) => keep('revokedKey', recordOfKey(key, count)),
    onOverflow: ({ customerId }) => lost('limit', customerId, 1),
  })

  function keep(kind: RecordKind, record: AuditRecord): boolean {
    const allowed = allow(kind, record.customerId)
    if (allowed && writer.add(record)) return true
    lost(allowed ? 'full' : 'limit', record.customerId, record.count)
    return false
  }

  function lost(reason: AuditLoss, customerId: string, records: number): void {
    telemetry.lost(reason, records)
    leftOut.add(customerId, records)
  }

  function writerLost(reason: AuditLoss, records: readonly AuditRecord[]): void {
    // Nothing can be told any more of what a stop has lost, but by metric and log.
    if (reason === 'refused') for (const { customerId, count } of records) lost(reason, customerId, count)
    else {
      telemetry.lost(reason, records.length)
      telemetry.leftOut(records.length)
    }
  }

  function recordOfKey(key: RefusedKey, count: number): AuditRecord {
    const { customerId, keyId, createdAt, method, route, target, from } = key
    return {
      auditId: newId(),
      customerId,
      createdAt,
      event: 'authentication_failed',
      actor: { type: 'key', keyId },
      method,
      route,
      target,
      from,
      status: UNAUTHORIZED,
      count,
    }
  }

  function noticeOf(customerId: string, count: number): AuditRecord {
    return {
      auditId: newId(),
      customerId,
      createdAt: clock.now(),
      event: 'left_out',
      actor: { type: 'service' },
      method: null,
      route: null,
      target: {},
      from: {},
      status: null,
      count,
    }
  }

  return {
    changed({ principal, action, method, route, target, from, status }) {
      keep(kindOf(action, status), {
        auditId: newId(),
        customerId: principal.customerId,
        createdAt: clock.now(),
        event: 'change',
        actor: actorOf(principal),
        method,
        route,
        target,
        from,
        status,
        count: 1,
      })
    },
    refused({ place, credential, secret, ...asked }) {
      telemetry.authenticationFailed(place, credential)
      const key = secret === undefined ? undefined : revokedKey(secret)
      // What is nobody's is in nobody's audit: whoever likes could fill it.
      if (key === undefined) return
      const { customerId, keyId } = key
      refusedKeys.happened(`${place} ${keyId}`, { ...asked, customerId, keyId, createdAt: clock.now() })
    },
    async stop() {
      refusedKeys.stop()
      leftOut.stop()
      await writer.stop()
    },
  }
}

function actorOf({ via, keyId, identity }: Principal): AuditRecord['actor'] {
  if (via === 'key') return { type: 'key', ...(keyId !== undefined && { keyId }) }
  if (identity === undefined) return { type: 'token' }
  const { issuer, subject } = identity
  return { type: 'token', issuer: boundedText(issuer, MAX_CLAIM), subject: boundedText(subject, MAX_CLAIM) }
}
