/** What is common to the objects that are applied (`provider-events.ts`). */

/** What applying a reading found out, for what follows outside of its transaction. */
export interface Applied {
  /** Whether the customer's balance rose. */
  raised?: boolean
  /** Subscriptions that must be ended and paid back: another one of the customer is older. */
  seconds?: readonly string[]
  /** A subscription that has to be read before, or once more behind. */
  first?: string
  next?: string
}

/** The message is the customer that the object names. */
export class StrangerError extends Error {
  override readonly name = 'StrangerError'
}
