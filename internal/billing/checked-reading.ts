/** What a provider tells is judged like any other input before it changes anything. */

import { isCurrency } from '../domain/currency.ts'
import { isIdentifier } from '../domain/identifiers.ts'
import {
  type InvoiceReading,
  type ObjectReference,
  type PlanChange,
  type Reading,
  UnusableReadingError,
} from './readings.ts'

const IDENTIFIERS = ['customerId', 'subscriptionId', 'planId', 'invoiceId', 'packId', 'checkoutId'] as const
const CENTS = ['amount', 'paidInCents', 'returnedInCents', 'priceInCents'] as const
const TIMES = ['createdAt', 'currentPeriodStart', 'currentPeriodEnd', 'periodStart', 'periodEnd'] as const
const OPTIONAL_TIMES = ['paidAt'] as const
/** The last time that Postgres and a `Date` both hold with ease: the year 9999. Unix ms. */
const MAX_TIME = 253_402_300_799_999
const STATES = {
  subscription: ['PENDING', 'ACTIVE', 'PAST_DUE', 'CANCELLING', 'CANCELLED'],
  invoice: ['open', 'paid', 'void'],
  pack: ['open', 'paid', 'failed', 'expired'],
}

const CHANGE_TIMES = ['changedAt', 'periodEnd'] as const

/** Throws UnusableReadingError, which names the field. The reading must be of the object that was asked for. */
export function checkReading(reading: Reading, { kind, id }: ObjectReference): void {
  const cycle = reading.kind === 'invoice' ? reading.cycle : null
  const fields: Readonly<Record<string, unknown>> = { ...reading, ...cycle, ...cycle?.newMoney }
  const refuse = (text: string) => new UnusableReadingError(text)
  if (reading.kind !== kind || idOf(reading) !== id) throw refuse('another object was read')
  const badId = IDENTIFIERS.find((name) => name in fields && !isIdentifier(fields[name]))
  if (badId !== undefined) throw refuse(`${badId} is no identifier`)
  if (typeof reading.providerCustomerId !== 'string' || !/^[!-~]{1,255}$/.test(reading.providerCustomerId)) {
    throw refuse('providerCustomerId is not usable')
  }
  const badTime = TIMES.find((name) => name in fields && !isWhole(fields[name], MAX_TIME))
  const badOptional = OPTIONAL_TIMES.find(
    (name) => name in fields && fields[name] !== null && !isWhole(fields[name], MAX_TIME),
  )
  if (badTime ?? badOptional) throw refuse(`${badTime ?? badOptional} is not in Unix ms`)
  const badAmount = CENTS.find((name) => name in fields && !isWhole(fields[name], Number.MAX_SAFE_INTEGER))
  if (badAmount !== undefined) throw refuse(`${badAmount} is not in cents`)
  const state = reading.kind === 'pack' ? reading.state : reading.status
  if (!STATES[reading.kind].includes(state)) throw refuse('status is not known')
  if ('currency' in fields && !isCurrency(fields.currency)) throw refuse('currency is not supported')
  checkOrder(reading, refuse)
}

function checkOrder(reading: Reading, refuse: (text: string) => Error): void {
  if (reading.kind === 'subscription') {
    if (reading.currentPeriodStart >= reading.currentPeriodEnd) {
      throw refuse('currentPeriodEnd must come after currentPeriodStart')
    }
    return
  }
  if (reading.kind === 'invoice') checkCycle(reading, refuse)
  if (reading.returnedInCents > reading.amount) throw refuse('returnedInCents is more than amount')
}

function checkCycle({ cycle, changes }: InvoiceReading, refuse: (text: string) => Error): void {
  if (cycle && cycle.periodStart >= cycle.periodEnd) throw refuse('periodEnd must come after periodStart')
  const { paidInCents, priceInCents } = cycle?.newMoney ?? { paidInCents: 0, priceInCents: 1 }
  if (priceInCents === 0) throw refuse('priceInCents must be at least 1')
  if (paidInCents > priceInCents) throw refuse('paidInCents is more than priceInCents')
  for (const change of changes) checkChange(change, refuse)
}

function checkChange(change: PlanChange, refuse: (text: string) => Error): void {
  const { fromPlanId, planId, changedAt, periodEnd } = change
  if (!isIdentifier(planId)) throw refuse('planId is no identifier')
  if (fromPlanId !== null && !isIdentifier(fromPlanId)) throw refuse('fromPlanId is no identifier')
  const badTime = CHANGE_TIMES.find((name) => !isWhole(change[name], MAX_TIME))
  if (badTime !== undefined) throw refuse(`${badTime} is not in Unix ms`)
  if (changedAt >= periodEnd) throw refuse('periodEnd must come after changedAt')
}

export function idOf(reading: Reading): string {
  if (reading.kind === 'subscription') return reading.subscriptionId
  return reading.kind === 'invoice' ? reading.invoiceId : reading.checkoutId
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= most
}
