/** What the audit tells of an account (docs/operations/audit.md): who did what, from where, and what came of it. */

/**
 * `change`: a management request that is no GET, or a command, whatever came of it. `authentication_failed`: a revoked
 * key of the customer was presented. `left_out`: so many records of the customer are missing here.
 */
export type AuditEvent = 'change' | 'authentication_failed' | 'left_out'

export const auditEvents: readonly AuditEvent[] = ['change', 'authentication_failed', 'left_out']

/** `command`: whoever runs the installation. `service`: the service itself. */
export type AuditActorType = 'key' | 'token' | 'command' | 'service'

export const auditActorTypes: readonly AuditActorType[] = ['key', 'token', 'command', 'service']

export interface AuditActor {
  readonly type: AuditActorType
  /** Of a key. */
  readonly keyId?: string
  /** Claim `iss` of a token. */
  readonly issuer?: string
  /** Claim `sub` of a token: with the issuer it names one account. */
  readonly subject?: string
}

/** What ids of a target are of. `cloneId`: the new buffer of a clone. */
export const auditTargets = ['customerId', 'projectId', 'bufferId', 'cloneId', 'keyId', 'dlqId'] as const

/** Ids alone, never values: those of the path, of the body and of the answer. */
export type AuditTarget = { readonly [name in (typeof auditTargets)[number]]?: string }

export interface AuditOrigin {
  /** The other end of the connection: that of the last proxy, where one stands in front. */
  readonly address?: string
  /** `X-Forwarded-For` as it came. Whoever asks writes into it what he likes. */
  readonly forwardedFor?: string
}

/** Of one customer. */
export interface AuditRecord {
  /** UUID. */
  readonly auditId: string
  readonly customerId: string
  /** Unix ms, by the clock of the process that saw it. */
  readonly createdAt: number
  readonly event: AuditEvent
  readonly actor: AuditActor
  /** null: no request. */
  readonly method: string | null
  /** The path as the route table has it, or what the command is called; null: neither. */
  readonly route: string | null
  readonly target: AuditTarget
  readonly from: AuditOrigin
  /** HTTP status of the answer; null: nobody was answered. */
  readonly status: number | null
  /** How often it happened, at least 1. */
  readonly count: number
}

/**
 * A stranger's text as it is kept: `most` characters at most, and none that Postgres cannot store or that a terminal
 * would obey.
 */
export function boundedText(text: string, most: number): string {
  return text
    .slice(0, most)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, '\ufffd')
}
