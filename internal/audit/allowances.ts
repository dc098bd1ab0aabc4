/**
 * How many records of a customer a process keeps. Each kind of record has an allowance of its own, so a flood of one kind
 * hides no other (docs/decisions/0039-what-the-audit-keeps.md).
 */
import type { Action } from '../domain/roles.ts'
import type { Clock } from '../runtime/clock.ts'
import { TokenBuckets } from '../runtime/token-buckets.ts'

/** Of one kind and customer in a process, so that nobody fills the table at the cost of others. */
export interface Allowance {
  /** Records at once. */
  readonly burst: number
  /** In the long run. */
  readonly perMinute: number
}

/** A script may make hundreds of buffers at once; nobody changes five things a minute for weeks. */
const CHANGES: Allowance = { burst: 1_000, perMinute: 5 }
/** Of refused requests, and of revoked keys. */
const REFUSALS: Allowance = { burst: 100, perMinute: 1 }

/** `account`: keys, customers, credits and the subscription. `work`: what members and scripts change all day. */
type Subject = 'account' | 'work'

/** `revokedKey`: a revoked key was presented. */
export type RecordKind = `${Subject} ${'changed' | 'refused'}` | 'revokedKey'

/** Of every action, so that a new one finds its allowance. */
const subjects: Readonly<Record<Action, Subject>> = {
  read: 'work',
  readAudit: 'work',
  writeBuffers: 'work',
  writeProjects: 'work',
  writeDeadLetters: 'work',
  writeApiKeys: 'account',
  createCustomers: 'account',
  addCredits: 'account',
  checkout: 'account',
  cancelImmediately: 'account',
  cancelAtPeriodEnd: 'account',
}

/** Of a change that was answered with this HTTP status. */
export function kindOf(action: Action, status: number): RecordKind {
  return `${subjects[action]} ${status < 400 ? 'changed' : 'refused'}`
}

export interface AllowanceOptions {
  readonly clock: Clock
  /** Of changes that were made. Default `CHANGES`. */
  readonly changes?: Allowance | undefined
  /** Of all else. Default `REFUSALS`. */
  readonly refusals?: Allowance | undefined
}

/** Whether one more record of this kind and customer is kept. */
export type Allow = (kind: RecordKind, customerId: string) => boolean

export function createAllowances({ clock, changes = CHANGES, refusals = REFUSALS }: AllowanceOptions): Allow {
  const bucketsOf = ({ burst, perMinute }: Allowance) =>
    new TokenBuckets({ clock, perSecond: perMinute / 60, burst })
  const changed = bucketsOf(changes)
  const refused = bucketsOf(refusals)
  return (kind, customerId) => {
    const buckets = kind.endsWith(' changed') ? changed : refused
    return buckets.take(`${kind} ${customerId}`) === 0
  }
}
