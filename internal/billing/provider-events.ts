/**
 * What happens at the payment provider (docs/architecture/billing.md, "Readings"). An event only names an object. The
 * object is read anew, and what counts is when that reading began, by Postgres' clock. So events may come in any
 * order, any number of times and at several nodes at once.
 */

import { isIdentifier } from '../domain/identifiers.ts'
import { type Applied, StrangerError } from './applied.ts'
import { applyInvoice } from './apply-invoice.ts'
import { applyPack } from './apply-pack.ts'
import { applySubscription } from './apply-subscription.ts'
import { checkReading } from './checked-reading.ts'
import type { BillingTransaction, PaymentProvider, ReadingLog, ReadingTime } from './ports.ts'
import { type ObjectReference, type Owner, type Reading, UnusableReadingError } from './readings.ts'

/**
 * `applied`: what was read stands in our rows. `ignored`: it is not of this installation, and need not be told again.
 * `later`: it is of this installation, and cannot be applied yet; it should be told again.
 */
export type Outcome = 'applied' | 'ignored' | 'later'

export interface ProviderEvents {
  /** Rejects when the provider or Postgres is away: it should be told again. */
  receive(reference: ObjectReference): Promise<Outcome>
}

/** What is worth a line in the log. */
export interface ProviderEventReports {
  /** `reason` in one line, without the object's data. */
  unusable(event: { reference: ObjectReference; reason: string }): void
  /** The object names a customer who is not the one that pays for it. */
  stranger(event: { reference: ObjectReference; customerId: string }): void
  /** A customer had two subscriptions: the one that was paid later is ended and paid back. */
  /** `refused`: why money of it could not be paid back; empty: all went back. */
  secondSubscription(event: { subscriptionId: string; customerId: string; refused: readonly string[] }): void
}

export interface ProviderEventsOptions {
  provider: PaymentProvider
  log: ReadingLog
  /** Told after a balance was raised: the ledger of this node forgets its refusals. */
  credited: (customerId: string) => void
  reports: ProviderEventReports
}

export function createProviderEvents(options: ProviderEventsOptions): ProviderEvents {
  const { provider, log, credited, reports } = options

  /** `left`: what follows from a reading is read so often, so a provider that says one thing and does another ends. */
  async function receive(reference: ObjectReference, left: number): Promise<Outcome> {
    const begun = await log.now()
    let reading: Reading | undefined
    try {
      reading = await provider.read(reference)
      if (reading === undefined) return 'ignored'
      checkReading(reading, reference)
      return await follow(reference, reading.customerId, await apply(reading, begun), left)
    } catch (error) {
      return await refuse(reference, error, reading)
    }
  }

  /** What is a stranger's is not told again, whatever is wrong with it: it would be so for ever, and hold up the sweep. */
  async function refuse(reference: ObjectReference, error: unknown, reading?: Owner): Promise<Outcome> {
    const owner = error instanceof UnusableReadingError ? (error.owner ?? reading) : undefined
    const stranger = error instanceof StrangerError ? error.message : await strangerIn(owner)
    if (stranger !== undefined) {
      reports.stranger({ reference, customerId: stranger })
      return 'ignored'
    }
    if (!(error instanceof UnusableReadingError)) throw error
    reports.unusable({ reference, reason: error.message })
    return 'later'
  }

  /** The customer that is named, when he is not the one that pays; undefined: he is, or it cannot be told. */
  async function strangerIn(owner: Owner | undefined): Promise<string | undefined> {
    if (owner === undefined) return undefined
    const { customerId, providerCustomerId } = owner
    if (!isIdentifier(customerId) || !isIdentifier(providerCustomerId)) return undefined
    return await log.apply(async (billing) => {
      const account = await billing.accountOf(provider.name, providerCustomerId)
      return account === customerId ? undefined : customerId
    })
  }

  async function apply(reading: Reading, begun: ReadingTime): Promise<Applied> {
    const applied = await log.apply(async (billing) => {
      await admit(billing, provider.name, reading)
      return await change(billing, reading, begun)
    })
    if (applied.raised) credited(reading.customerId)
    return applied
  }

  async function follow(
    reference: ObjectReference,
    customerId: string,
    { first, living }: Applied,
    left: number,
  ): Promise<Outcome> {
    if (left === 0) return first === undefined ? 'applied' : 'later'
    const read = (id: string) => receive({ kind: 'subscription', id }, left - 1)
    if (first !== undefined) {
      // Ours, and not known yet: what it tells is applied once its subscription is.
      return (await read(first)) === 'applied' ? await receive(reference, left - 1) : 'later'
    }
    return living === undefined ? 'applied' : await endSeconds(customerId, living)
  }

  /**
   * Ends all but the one that is kept, if that one still lives at the provider: our row of it may be behind. While it cannot
   * be read, nothing ends. Each step may be done again. When one fails, the event is told again and finds the same.
   */
  async function endSeconds(
    customerId: string,
    [kept, ...seconds]: readonly string[],
  ): Promise<'applied' | 'later'> {
    const outcome = await receive({ kind: 'subscription', id: kept! }, 0)
    if (outcome !== 'applied') return outcome === 'later' ? 'later' : 'applied'
    const living = await log.apply((billing) => billing.livingSubscriptions(customerId))
    if (!living.includes(kept!)) return 'applied'
    for (const subscriptionId of seconds.filter((id) => living.includes(id))) {
      const refused = await provider.cancelAndRefund(subscriptionId)
      reports.secondSubscription({ subscriptionId, customerId, refused })
      await receive({ kind: 'subscription', id: subscriptionId }, 0)
    }
    return 'applied'
  }

  return { receive: (reference) => receive(reference, FOLLOWING) }
}

/** An invoice, then its subscription, then the invoice again. */
const FOLLOWING = 2

function change(billing: BillingTransaction, reading: Reading, begun: ReadingTime): Promise<Applied> {
  switch (reading.kind) {
    case 'subscription':
      return applySubscription(billing, reading, begun)
    case 'invoice':
      return applyInvoice(billing, reading, begun)
    case 'pack':
      return applyPack(billing, reading, begun)
  }
}

/**
 * The customer that an object names counts only when its payer is his own customer at the provider: whoever may write
 * there cannot give or take anything in another's name.
 */
async function admit(billing: BillingTransaction, provider: string, reading: Reading): Promise<void> {
  const { customerId, providerCustomerId } = reading
  const account = await billing.accountOf(provider, providerCustomerId)
  if (account !== customerId || !(await billing.lockCustomer(customerId))) throw new StrangerError(customerId)
}
