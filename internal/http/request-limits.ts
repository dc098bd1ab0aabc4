/** How often a credential and an account may ask the management API (docs/reference/api.md, "Limits"). */
import { ServiceError } from '../domain/errors.ts'
import type { Principal } from '../domain/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { Semaphores } from '../runtime/semaphores.ts'
import { TokenBuckets } from '../runtime/token-buckets.ts'
import type { HttpTelemetry, RateLimit } from './ports.ts'
import type { Route } from './routes/route.ts'

export interface RequestLimits {
  /** null, or 429 with `Retry-After`. To be asked as soon as it is known who asks, and once a request. */
  refusal(principal: Principal, waitsFor?: Route['waitsFor']): ServiceError | null
  /**
   * Runs `work` of a customer, once fewer than `AT_ONCE` others of the customer run. 429 when as many wait as may come at
   * once, or when it is a read and the answers before it were so large that it is not run. Without a rate nothing waits.
   */
  inTurn<T>(principal: Principal, kind: 'read' | 'change', work: () => Promise<T>): Promise<T>
  /** As `inTurn`, with turns of their own that end when `left` resolves, which is called once `work` is done. */
  answering<T>(customerId: string, work: () => Promise<T>, left: () => Promise<void>): Promise<T>
  /** Counts the size of an answer to a read, once it is known: the next reads pay for it. */
  charge(principal: Principal, answer: Answered): void
}

/** What an answer was made of. */
export interface Answered {
  /** Of its body. */
  readonly bytes: number
  /** Of a `list` each entry was read, opened and written as JSON; `bytes` were passed on as they are stored. */
  readonly kind: 'list' | 'bytes'
}

export interface RequestLimitsOptions {
  readonly clock: Clock
  /** Requests of one key, and of one account with ID tokens; Infinity: any (`PENSTOCK_KEY_REQUESTS_PER_SECOND`). */
  readonly perSecond: number
  readonly telemetry: Pick<HttpTelemetry, 'limited'>
}

/** Seconds of the rate that may come at once. */
export const BURST_SECONDS = 2
/** All keys and tokens of a customer together may ask so many times as often as one of them. */
export const CUSTOMER_RATIO = 2

/**
 * What a customer may ask of the payment provider: so much at once, and so much a minute. Each request is several calls
 * there, and the provider limits the calls of the whole installation.
 */
export const PROVIDER_AT_ONCE = 20
export const PROVIDER_PER_MINUTE = 20

/**
 * Requests of a customer that a process works on at once, and answers to reads that are on their way at once. A burst is
 * spread by it, so that others are served in between, and who does not read holds no more answers.
 */
export const AT_ONCE = 2
/** When to come again where too many wait for their turn, ms. */
const REFUSAL_RETRY_MS = 1_000

/**
 * Bytes of an answer that cost as much as a request: some ms of the event loop. Without it one customer could take whole
 * cores by lists of a thousand buffers.
 */
export const BYTES_A_TOKEN = { list: 100_000, bytes: 1_000_000 } as const

export function createRequestLimits({ clock, perSecond, telemetry }: RequestLimitsOptions): RequestLimits {
  const bucketsOf = (rate: number) =>
    new TokenBuckets({ clock, perSecond: rate, burst: Math.max(1, rate * BURST_SECONDS) })
  const credentials = bucketsOf(perSecond)
  const customers = bucketsOf(perSecond * CUSTOMER_RATIO)
  // Of their own: a key that leaked can be revoked, whatever is read with it.
  const sizes = { credentials: bucketsOf(perSecond), customers: bucketsOf(perSecond * CUSTOMER_RATIO) }
  // A request that waits holds a connection, and those of all customers are bounded.
  const mostWaiting = perSecond * CUSTOMER_RATIO * BURST_SECONDS
  const isLimited = perSecond !== Number.POSITIVE_INFINITY
  const perSecondOfProvider = isLimited ? PROVIDER_PER_MINUTE / 60 : perSecond
  const provider = new TokenBuckets({ clock, perSecond: perSecondOfProvider, burst: PROVIDER_AT_ONCE })
  const works = new Semaphores(isLimited ? AT_ONCE : perSecond)
  const answers = new Semaphores(isLimited ? AT_ONCE : perSecond)
  const refused = (limit: RateLimit, retryAfterMs: number) => {
    telemetry.limited(limit)
    return new ServiceError('requestRate', {}, { retryAfterMs })
  }
  async function run<T>(
    turns: Semaphores,
    customerId: string,
    work: () => Promise<T>,
    left?: () => Promise<void>,
  ): Promise<T> {
    if (turns.waiting(customerId) >= mostWaiting) throw refused('customer', REFUSAL_RETRY_MS)
    return turns.run(customerId, work, left)
  }
  function demandNoDebt(principal: Principal): void {
    const ofCredential = sizes.credentials.owes(credentialOf(principal))
    if (ofCredential > 0) throw refused('key', ofCredential)
    const ofCustomer = sizes.customers.owes(principal.customerId)
    if (ofCustomer > 0) throw refused('customer', ofCustomer)
  }
  return {
    inTurn: (principal, kind, work) =>
      run(works, principal.customerId, async () => {
        // Whoever waited was let in before the answers ahead of it were charged.
        if (kind === 'read') demandNoDebt(principal)
        return work()
      }),
    charge(principal, { bytes, kind }) {
      const tokens = Math.floor(bytes / BYTES_A_TOKEN[kind])
      sizes.credentials.spend(credentialOf(principal), tokens)
      sizes.customers.spend(principal.customerId, tokens)
    },
    answering: (customerId, work, left) => run(answers, customerId, work, left),
    refusal(principal, waitsFor) {
      const { customerId } = principal
      const ofCredential = credentials.take(credentialOf(principal))
      if (ofCredential > 0) return refused('key', ofCredential)
      // One that its own bucket refuses takes nothing from the others of its customer.
      const ofCustomer = customers.take(customerId)
      if (ofCustomer > 0) return refused('customer', ofCustomer)
      const ofProvider = waitsFor === 'payment-provider' ? provider.take(customerId) : 0
      return ofProvider > 0 ? refused('payment-provider', ofProvider) : null
    },
  }
}

function credentialOf({ customerId, keyId }: Principal): string {
  return keyId ?? `token ${customerId}`
}
