/** What a provider tells is judged like any other input before it changes anything. */

import { isCurrency } from '../domain/currency.ts'
import { isIdentifier } from '../domain/identifiers.ts'
import { type ObjectReference, type Reading, UnusableReadingError } from './readings.ts'

const IDENTIFIERS = ['customerId', 'subscriptionId', 'planId', 'invoiceId', 'packId', 'checkoutId'] as const
const CENTS = ['amount', 'paidInCents', 'returnedInCents'] as const
const TIMES = ['createdAt', 'currentPeriodStart', 'currentPeriodEnd', 'periodStart', 'periodEnd'] as const
const OPTIONAL_TIMES = ['paidAt', 'planChangedAt'] as const
/** The last time that Postgres and a `Date` both hold with ease: the year 9999. Unix ms. */
const MAX_TIME = 253_402_300_799_999
const STATES = {
  subscription: ['PENDING', 'ACTIVE', 'PAST_DUE', 'CANCELLING', 'CANCELLED'],
  invoice: ['open', 'paid', 'void'],
  pack: ['open', 'paid', 'failed', 'expired'],
}

/** Throws UnusableReadingError, which names the field. The reading must be of the object that was asked for. */
export function checkReading(reading: Reading, { kind, id }: ObjectReference): void {
  const fields: Readonly<Record<string, unknown>> = { ...reading, ...('cycle' in reading && reading.cycle) }
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
  if (reading.kind === 'invoice' && reading.cycle && reading.cycle.periodStart >= reading.cycle.periodEnd) {
    throw refuse('periodEnd must come after periodStart')
  }
  if (reading.returnedInCents > reading.amount) throw refuse('returnedInCents is more than amount')
}

export function idOf(reading: Reading): string {
  if (reading.kind === 'subscription') return reading.subscriptionId
  return reading.kind === 'invoice' ? reading.invoiceId : reading.checkoutId
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= most
}
