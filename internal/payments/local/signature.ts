/**
 * Events of the local provider on their way: `penstock-local-signature: t=<Unix s>,v1=<hex>`, the HMAC-SHA256 of the time, a
 * full stop and the body.
 */

import type { Notification } from '../../billing/ports.ts'
import { BadNotificationError, type ObjectReference } from '../../billing/readings.ts'
import { isIdentifier } from '../../domain/identifiers.ts'
import { readJson } from '../../domain/json.ts'
import { sign, verifySignature } from '../../domain/signature.ts'
import { type EventKind, eventKinds, type SignedNotification } from './ports.ts'
import { eventView } from './readings.ts'
import type { LocalEvent } from './state.ts'

export const SIGNATURE_HEADER = 'penstock-local-signature'
/** Between the real clocks of who signs and who reads, s. */
const TOLERANCE_S = 300

const SIGNATURE = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/

/** `now`: real time, Unix ms. */
export function signed(secret: string, event: LocalEvent, now: number): SignedNotification {
  const body = Buffer.from(JSON.stringify({ ...eventView(event), objectId: event.objectId }))
  const time = String(Math.floor(now / 1_000))
  const signature = `t=${time},v1=${sign(secret, payloadOf(time, body))}`
  return { body, headers: { 'content-type': 'application/json', [SIGNATURE_HEADER]: signature } }
}

/** The object that it names. Throws BadNotificationError. `secret`: undefined: nothing was ever signed. */
export function verified(
  secret: string | undefined,
  notification: Notification,
  now: number,
): ObjectReference {
  const [, time = '', signature = ''] = SIGNATURE.exec(notification.header(SIGNATURE_HEADER) ?? '') ?? []
  if (signature === '') throw new BadNotificationError(`${SIGNATURE_HEADER} is missing or not valid`)
  if (Math.abs(now / 1_000 - Number(time)) > TOLERANCE_S) {
    throw new BadNotificationError(`${SIGNATURE_HEADER} is not of the last ${TOLERANCE_S} s`)
  }
  const { body } = notification
  if (secret === undefined || !verifySignature(secret, payloadOf(time, body), signature)) {
    throw new BadNotificationError(`${SIGNATURE_HEADER} is not the one of this body`)
  }
  return referenceIn(body)
}

function payloadOf(time: string, body: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${time}.`), body])
}

function referenceIn(body: Uint8Array): ObjectReference {
  const read = readJson(body)
  if (!read.ok) throw new BadNotificationError('the body is not JSON')
  const { value } = read
  if (typeof value !== 'object' || value === null) throw new BadNotificationError('the body is no object')
  const {
    eventId,
    kind,
    objectId,
    customerId,
    subscriptionId = 'none',
    at,
  } = value as Record<string, unknown>
  for (const [name, id] of Object.entries({ eventId, objectId, customerId, subscriptionId })) {
    if (!isIdentifier(id)) throw new BadNotificationError(`${name} is no identifier`)
  }
  if (!Number.isSafeInteger(at)) throw new BadNotificationError('at is no time')
  if (!eventKinds.includes(kind as EventKind)) throw new BadNotificationError('kind is not known')
  return { kind: KINDS[kind as EventKind], id: objectId as string }
}

const KINDS: Readonly<Record<EventKind, ObjectReference['kind']>> = {
  'subscription.changed': 'subscription',
  'invoice.changed': 'invoice',
  'pack.changed': 'pack',
}
