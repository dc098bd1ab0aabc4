/**
 * Customers of people who sign in with an ID token (docs/architecture/protocol.md, "Accounts"): made with the first
 * one.
 */

import { ServiceError } from '../domain/errors.ts'
import type { Identity } from '../domain/identity.ts'
import type { Randomness } from '../runtime/clock.ts'
import type { TokenBuckets } from '../runtime/token-buckets.ts'
import type { SignUpStore } from './ports.ts'

export interface SignUps {
  /** `customerId` of this account, created unless it is there already; however many ask at once, one is. 429: too many are new. */
  signUp(identity: Identity): Promise<string>
}

export interface SignUpsOptions {
  signUps: SignUpStore
  randomness: Randomness
  /** Credits of a new customer, >= 0 (`PENSTOCK_INITIAL_CREDITS`). */
  initialCredits: number
  /** One for all: whoever can make accounts at the provider can make any number. */
  buckets: Pick<TokenBuckets, 'take'>
  /** A sign-up was refused for their number. */
  onLimited: () => void
  /** Told of each customer that was created. */
  onCreated: (identity: Identity, customerId: string) => void
}

/** Random bytes in an id: 96 bits do not meet by chance. */
const ID_BYTES = 12

export function createSignUps(options: SignUpsOptions): SignUps {
  const { signUps, randomness, initialCredits, buckets, onLimited, onCreated } = options
  return {
    async signUp(identity) {
      const waitMs = buckets.take('sign-ups')
      if (waitMs > 0) {
        onLimited()
        throw new ServiceError('signUpRate', {}, { retryAfterMs: waitMs })
      }
      const customerId = `cus_${Buffer.from(randomness.bytes(ID_BYTES)).toString('hex')}`
      const name = identity.name ?? customerId
      const ensured = await signUps.ensure(identity, { customerId, name, createdBy: null, initialCredits })
      if (ensured === customerId) onCreated(identity, customerId)
      return ensured
    },
  }
}
