/** Requests that say that they come from Stripe: which of them do, and what they name. */

import type Stripe from 'stripe'
import type { Notification } from '../../billing/ports.ts'
import { BadNotificationError, type ObjectReference } from '../../billing/readings.ts'
import { readJson } from '../../domain/json.ts'
import type { Connection } from './client.ts'
import { parseEvent } from './events.ts'
import { referencesOf } from './references.ts'

/** An older signature is not taken, s: who has overheard a request cannot repeat it for ever. */
const TOLERANCE_S = 300

/** Rejects with BadNotificationError, or plainly when Stripe does not answer where a refund belongs. */
export async function referencesOfNotification(
  connection: Connection,
  secrets: readonly string[],
  notification: Notification,
): Promise<ObjectReference[]> {
  checkSignature(connection, secrets, notification)
  const read = readJson(notification.body)
  if (!read.ok) throw new BadNotificationError('the body is not valid JSON')
  const { object, isLive } = parseEvent(read.value)
  // An endpoint of the test mode that got the secret of the live one, or the other way round.
  if (object === undefined || isLive !== connection.isLive) return []
  return await referencesOf(connection.stripe, object)
}

/** By any of the secrets: while one replaces another, Stripe signs with both. */
function checkSignature(
  { stripe, clock }: Connection,
  secrets: readonly string[],
  { body, header }: Notification,
): void {
  const signature = header('stripe-signature')
  if (signature === undefined) throw new BadNotificationError('the header stripe-signature is missing')
  const now = clock.now()
  let why = 'its signature does not fit'
  for (const secret of secrets) {
    try {
      verify(stripe, { body, signature, secret, now })
      return
    } catch (error) {
      if (/tolerance/.test((error as Error).message)) why = 'its signature is too old'
    }
  }
  throw new BadNotificationError(why)
}

function verify(
  stripe: Stripe,
  { body, signature, secret, now }: { body: Uint8Array; signature: string; secret: string; now: number },
): void {
  stripe.webhooks.signature!.verifyHeader(body, signature, secret, TOLERANCE_S, undefined, now)
}
