/** What money that goes back takes of the credits that it had brought (docs/architecture/billing.md, "Money back"). */

import { proportion } from './proportion.ts'

/**
 * Credits of a payment of `amountInCents` that are taken back in all once `returnedInCents` of it went back: in
 * proportion, half up, at most all. A payment of nothing has nothing to give back.
 */
export function returnedCredits(credits: number, amountInCents: number, returnedInCents: number): number {
  if (returnedInCents <= 0 || amountInCents <= 0) return 0
  return proportion(credits, Math.min(returnedInCents, amountInCents), amountInCents)
}

/** Whether all of a payment went back. */
export function isReturned(amountInCents: number, returnedInCents: number): boolean {
  return amountInCents > 0 && returnedInCents >= amountInCents
}
