/** Events of Stripe: which of them count, and what must be right about one before it does. */

import { BadNotificationError } from '../../billing/readings.ts'

/** What an event's object is, by its `object`. */
type Kind = 'subscription' | 'invoice' | 'checkout.session' | 'charge' | 'refund' | 'dispute'

/** Of the object, what tells where it belongs. Ids are well formed. */
export interface EventObject {
  kind: Kind
  id: string
  metadata: Readonly<Record<string, string>> | null
  subscription: string | null
  invoice: string | null
  paymentIntent: string | null
  charge: string | null
  /** Metadata of its subscription, as an invoice keeps them. */
  subscriptionMetadata: Readonly<Record<string, string>> | null
}

export interface StripeEvent {
  id: string
  type: string
  /** undefined: events of this type do not count. */
  object: EventObject | undefined
  isLive: boolean
}

const kinds: Readonly<Record<Kind, readonly string[]>> = {
  subscription: ['created', 'updated', 'deleted', 'paused', 'resumed'].map(
    (name) => `customer.subscription.${name}`,
  ),
  invoice: ['paid', 'finalized', 'payment_failed', 'voided', 'marked_uncollectible'].map(
    (name) => `invoice.${name}`,
  ),
  'checkout.session': ['completed', 'async_payment_succeeded', 'async_payment_failed', 'expired'].map(
    (name) => `checkout.session.${name}`,
  ),
  charge: ['charge.refunded'],
  refund: ['refund.created', 'refund.updated', 'refund.failed'],
  dispute: ['created', 'updated', 'closed', 'funds_withdrawn', 'funds_reinstated'].map(
    (name) => `charge.dispute.${name}`,
  ),
}

/** Exactly those that the webhook endpoint asks for. */
export const eventTypes: readonly string[] = Object.values(kinds).flat()

const kindsByType = new Map(
  Object.entries(kinds).flatMap(([kind, types]) => types.map((type) => [type, kind as Kind] as const)),
)

const ID = /^[A-Za-z0-9_-]{1,255}$/
const TYPE = /^[a-z0-9_.]{1,255}$/
/** The year 9999, in seconds. */
const LAST_SECOND = 253_402_300_799

/** Throws BadNotificationError, which names the field. */
export function parseEvent(value: unknown): StripeEvent {
  const event = recordOf(value, 'the event')
  if (event.object !== 'event') throw bad('object', 'must be "event"')
  const id = textOf(event.id, 'id', ID)
  const type = textOf(event.type, 'type', TYPE)
  const { created, livemode } = event
  if (!Number.isSafeInteger(created) || Number(created) < 0 || Number(created) > LAST_SECOND) {
    throw bad('created', 'must be Unix seconds')
  }
  if (typeof livemode !== 'boolean') throw bad('livemode', 'must be true or false')
  if (event.api_version !== null && typeof event.api_version !== 'string') {
    throw bad('api_version', 'must be a text')
  }
  const object = recordOf(recordOf(event.data, 'data').object, 'data.object')
  const kind = kindsByType.get(type)
  return { id, type, isLive: livemode, object: kind && parseObject(object, kind) }
}

/** Both places where API versions put the subscription of an invoice. */
function parseObject(object: Readonly<Record<string, unknown>>, kind: Kind): EventObject {
  if (object.object !== kind) throw bad('data.object.object', `must be "${kind}"`)
  const parent = optionalRecord(object.parent, 'data.object.parent')
  const [now, before] = [
    optionalRecord(parent?.subscription_details, 'data.object.parent.subscription_details'),
    optionalRecord(object.subscription_details, 'data.object.subscription_details'),
  ]
  const subscription =
    optionalId(now?.subscription, 'data.object.parent.subscription_details.subscription') ??
    optionalId(object.subscription, 'data.object.subscription')
  return {
    kind,
    id: textOf(object.id, 'data.object.id', ID),
    metadata: metadataOf(object.metadata, 'data.object.metadata'),
    subscription,
    invoice: optionalId(object.invoice, 'data.object.invoice'),
    paymentIntent: optionalId(object.payment_intent, 'data.object.payment_intent'),
    charge: optionalId(object.charge, 'data.object.charge'),
    subscriptionMetadata: metadataOf(
      now?.metadata ?? before?.metadata,
      'data.object.parent.subscription_details.metadata',
    ),
  }
}

function metadataOf(value: unknown, field: string): Readonly<Record<string, string>> | null {
  const metadata = optionalRecord(value, field)
  if (metadata === null) return null
  if (Object.values(metadata).some((each) => typeof each !== 'string')) throw bad(field, 'must hold texts')
  return metadata as Record<string, string>
}

/** An id, or an object that stands there whole. */
function optionalId(value: unknown, field: string): string | null {
  if (value === null || value === undefined) return null
  return typeof value === 'string'
    ? textOf(value, field, ID)
    : textOf(recordOf(value, field).id, `${field}.id`, ID)
}

function textOf(value: unknown, field: string, pattern: RegExp): string {
  if (typeof value === 'string' && pattern.test(value)) return value
  throw bad(field, 'is missing or malformed')
}

function optionalRecord(value: unknown, field: string): Readonly<Record<string, unknown>> | null {
  return value === null || value === undefined ? null : recordOf(value, field)
}

function recordOf(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>
  }
  throw bad(field, 'must be an object')
}

function bad(field: string, what: string): BadNotificationError {
  return new BadNotificationError(`${field} ${what}`)
}
