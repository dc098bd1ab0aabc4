/** The connection to Stripe: its package at its own API version, bounded in time. */

import { createHash } from 'node:crypto'
import Stripe from 'stripe'
import type { Clock } from '../../runtime/clock.ts'
import { withDeadline } from '../../runtime/deadline.ts'
import { modeOf } from './mode.ts'

/** The version of the installed package, whose types say what is read here. Another one does not compile. */
export const STRIPE_API_VERSION: typeof Stripe.API_VERSION = '2026-08-26.dahlia'

/** One call, ms. */
const CALL_MS = 4_000
/** Everything that one operation does, ms: a port promises 10 s. */
const OPERATION_MS = 9_000
/** A call that fails on the way, or that Stripe has no answer to, is made once more. */
const RETRIES = 1
/** Stripe keeps failures by idempotency key, too: what failed there for good may be tried anew an hour later. */
const KEY_LASTS_MS = 3_600_000

export interface ConnectionOptions {
  /** `sk_…` or `rk_…`. */
  key: string
  clock: Clock
  /** Another address than Stripe's own, for tests: `http://127.0.0.1:12111`. */
  origin?: string | undefined
}

export interface Connection {
  readonly stripe: Stripe
  readonly clock: Clock
  /** Whether the key is one of real money. */
  readonly isLive: boolean
}

export function connect({ key, clock, origin }: ConnectionOptions): Connection {
  const address = origin === undefined ? undefined : new URL(origin)
  const stripe = new Stripe(key, {
    apiVersion: STRIPE_API_VERSION,
    timeout: CALL_MS,
    maxNetworkRetries: RETRIES,
    telemetry: false,
    ...(address && {
      protocol: address.protocol === 'http:' ? ('http' as const) : ('https' as const),
      host: address.hostname,
      port: address.port || (address.protocol === 'http:' ? 80 : 443),
    }),
  })
  return { stripe, clock, isLive: modeOf(key) === 'live' }
}

/** `work`, or a rejection before the port's 10 s are over. */
export function bounded<T>(clock: Clock, work: Promise<T>): Promise<T> {
  return withDeadline(clock, OPERATION_MS, work)
}

/**
 * The key of a request that makes something: the same for the same parts and the same parameters, so that two nodes, or
 * one that was killed before the answer, make it once. Good for an hour.
 */
export function idempotencyKey(clock: Clock, what: string, ...parts: unknown[]): string {
  const hour = Math.floor(clock.now() / KEY_LASTS_MS)
  const digest = createHash('sha256')
    .update(JSON.stringify([parts, hour]))
    .digest('hex')
  return `penstock-${what}-${digest.slice(0, 40)}`
}

/** undefined in place of what Stripe does not have. */
export async function orMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing'
}

export function isInvalid(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeInvalidRequestError
}

/** Of an object that may stand there whole. */
export function idOf(value: string | { id: string } | null | undefined): string | undefined {
  return typeof value === 'string' ? value : (value?.id ?? undefined)
}

/** Stripe counts seconds. */
export function msOf(seconds: number): number {
  return seconds * 1_000
}
