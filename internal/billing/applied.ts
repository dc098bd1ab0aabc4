/** What is common to the objects that are applied (`provider-events.ts`). */

/** What applying a reading found out, for what follows outside of its transaction. */
export interface Applied {
  /** Whether the customer's balance rose. */
  raised?: boolean
  /** Those of the customer that live, by our rows, when there are several: the one to keep first. All others must end. */
  living?: readonly string[]
  /** A subscription that has to be read before. */
  first?: string
}

/** The message is the customer that the object names. */
export class StrangerError extends Error {
  override readonly name = 'StrangerError'
}
