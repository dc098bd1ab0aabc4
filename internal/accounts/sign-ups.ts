/**
 * Customers of people who sign in with an ID token (docs/architecture/protocol.md, "Accounts"): made with the first
 * one.
 */

import type { Identity } from '../domain/identity.ts'
import type { Randomness } from '../runtime/clock.ts'
import type { SignUpStore } from './ports.ts'

export interface SignUps {
  /** `customerId` of this account, created unless it is there already; however many ask at once, one is. */
  signUp(identity: Identity): Promise<string>
}

export interface SignUpsOptions {
  signUps: SignUpStore
  randomness: Randomness
  /** Credits of a new customer, >= 0 (`PENSTOCK_INITIAL_CREDITS`). */
  initialCredits: number
}

/** Random bytes in an id: 96 bits do not meet by chance. */
const ID_BYTES = 12

export function createSignUps({ signUps, randomness, initialCredits }: SignUpsOptions): SignUps {
  return {
    signUp(identity) {
      const customerId = `cus_${Buffer.from(randomness.bytes(ID_BYTES)).toString('hex')}`
      const name = identity.name ?? customerId
      return signUps.ensure(identity, { customerId, name, createdBy: null, initialCredits })
    },
  }
}
