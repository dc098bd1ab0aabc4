/** What may have changed at Stripe since a time: by its events, or by all that there is. */

import type Stripe from 'stripe'
import { BadNotificationError, type ObjectReference } from '../../billing/readings.ts'
import type { Connection } from './client.ts'
import { type EventObject, eventTypes, parseEvent } from './events.ts'
import { keptMetadataOf, subscriptionOf } from './invoice-reading.ts'
import { customerOf, packOf } from './metadata.ts'
import { referencesOf } from './references.ts'

/** Stripe keeps events for 30 days; one day less, so that none is lost while they are read. Ms. */
const EVENTS_LAST_MS = 29 * 86_400_000
/** A list of events takes so many types. */
const MOST_TYPES = 20
const PAGE = 100

/** Each object once. Rejects when Stripe does not answer. */
export async function* changesSince(connection: Connection, since: number): AsyncGenerator<ObjectReference> {
  const isRecent = since >= connection.clock.now() - EVENTS_LAST_MS
  const told = new Set<string>()
  for await (const reference of isRecent ? byEvents(connection, since) : all(connection.stripe)) {
    const name = `${reference.kind} ${reference.id}`
    if (told.has(name)) continue
    told.add(name)
    yield reference
  }
}

async function* byEvents({ stripe, isLive }: Connection, since: number): AsyncGenerator<ObjectReference> {
  const created = { gte: Math.max(0, Math.floor(since / 1_000)) }
  for (let first = 0; first < eventTypes.length; first += MOST_TYPES) {
    const types = eventTypes.slice(first, first + MOST_TYPES)
    for await (const event of stripe.events.list({ types, created, limit: PAGE })) {
      const object = objectOf(event, isLive)
      if (object !== undefined) yield* await referencesOf(stripe, object)
    }
  }
}

/** An event that cannot be understood is not ours to stop at: those behind it count. */
function objectOf(event: unknown, isLive: boolean): EventObject | undefined {
  try {
    const parsed = parseEvent(event)
    return parsed.isLive === isLive ? parsed.object : undefined
  } catch (error) {
    if (error instanceof BadNotificationError) return undefined
    throw error
  }
}

/** Subscriptions first: invoices need them. Checkouts that are not completed have changed nothing. */
async function* all(stripe: Stripe): AsyncGenerator<ObjectReference> {
  for await (const { id, metadata } of stripe.subscriptions.list({ status: 'all', limit: PAGE })) {
    if (customerOf(metadata) !== undefined) yield { kind: 'subscription', id }
  }
  for await (const invoice of stripe.invoices.list({ limit: PAGE })) {
    const kept = keptMetadataOf(invoice)
    const isOurs = kept === undefined || customerOf(kept) !== undefined
    if (subscriptionOf(invoice) !== undefined && isOurs) yield { kind: 'invoice', id: invoice.id }
  }
  for await (const { id, metadata } of stripe.checkout.sessions.list({ status: 'complete', limit: PAGE })) {
    if (packOf(metadata) !== undefined) yield { kind: 'pack', id }
  }
}
