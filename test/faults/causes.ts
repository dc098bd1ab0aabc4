/** Which faults can be the cause of what: nothing is excused by one that cannot. */
import { SHUTDOWN_BUDGET_MS } from '../../internal/runtime/lifecycle.ts'
import type { Fault } from './history.ts'

/** The node that a fault is about; undefined: it is about the whole service, a broker, or the network to the destination. */
export function nodeOf({ kind }: Fault): string | undefined {
  return / ((?:admin|ingress|actor)-\d+)$/.exec(kind)?.[1]
}

/** Every process of the service is gone with it: what runs afterwards began afterwards. */
export function endsAll({ kind }: Fault): boolean {
  return kind === 'kill'
}

function roleOf(fault: Fault): string | undefined {
  return nodeOf(fault)?.split('-')[0]
}

/**
 * An attempt is cut off, or the record of what it brought: by whoever delivers, its broker, or the network to the
 * destination. Postgres has no part in either.
 */
export function cutsDeliveries(fault: Fault): boolean {
  const role = roleOf(fault)
  return !fault.kind.startsWith('postgres-') && (role === undefined || role === 'actor')
}

/** The sender of a batch hears of it, as of a failed attempt: it counts. */
export function isOnTheWay({ kind }: Fault): boolean {
  return kind.startsWith('destination-')
}

/** An owner that stands still may find its attempts overdue when it goes on, though they were answered. */
export function standsStill({ kind }: Fault): boolean {
  return kind.startsWith('freeze actor-') || kind === 'stall'
}

/** A server of the broker that is cut off from its peers has no new items for the owners that it serves. */
export function hidesItems({ kind }: Fault): boolean {
  return /^nats-blackhole nats-\d+$/.test(kind)
}

/** What a buffer was told is not known to an owner meanwhile, or what it sent before is on its way for long. */
export function hidesChanges(fault: Fault): boolean {
  const role = roleOf(fault)
  if (role !== undefined && role !== 'actor') return false
  return fault.kind.startsWith('postgres-') || fault.heldUntil !== undefined || standsStill(fault)
}

/**
 * A charge is not settled: by whoever takes webhooks, its broker and its database. Of one with an id (`explicit`), for which a
 * verdict is awaited, by its owner as well.
 */
export function cutsCharges(fault: Fault, explicit: boolean): boolean {
  const role = roleOf(fault)
  if (fault.kind.startsWith('destination-') || role === 'admin') return false
  return explicit || role !== 'actor'
}

/**
 * A stop that took all of its time ends with exit code 1: not everything could be released, for the only broker stood still
 * meanwhile. One that comes back, or one of three, excuses nothing.
 */
export function hindersStop({ kind }: Fault, tookMs: number): boolean {
  return kind === 'freeze nats' && tookMs >= SHUTDOWN_BUDGET_MS
}
