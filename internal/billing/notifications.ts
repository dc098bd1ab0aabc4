/** Notifications of a payment provider: what they name is read anew, one object after the other. */

import type { Clock } from '../runtime/clock.ts'
import type { Notification, PaymentProvider } from './ports.ts'
import type { ProviderEvents } from './provider-events.ts'

/** A provider waits about so long for an answer, ms. What takes longer goes on, and is told again. */
export const NOTIFICATION_MS = 10_000

export interface Notifications {
  /**
   * `taken`: all that it names stands in our rows, or is not of this installation. `later`: tell it again. Rejects with
   * BadNotificationError when it is not the provider's, or when the provider or Postgres is away.
   */
  take(notification: Notification): Promise<'taken' | 'later'>
}

export interface NotificationsOptions {
  provider: PaymentProvider
  events: ProviderEvents
  clock: Clock
}

export function createNotifications({ provider, events, clock }: NotificationsOptions): Notifications {
  async function apply(notification: Notification): Promise<'taken' | 'later'> {
    let result: 'taken' | 'later' = 'taken'
    for (const reference of await provider.notification(notification)) {
      if ((await events.receive(reference)) === 'later') result = 'later'
    }
    return result
  }

  return {
    async take(notification) {
      const late = Promise.withResolvers<'later'>()
      const cancel = clock.after(NOTIFICATION_MS, () => late.resolve('later'))
      const applied = apply(notification)
      // Its failure behind the answer is nobody's: the provider tells it again.
      applied.catch(() => {})
      return await Promise.race([applied, late.promise]).finally(cancel)
    },
  }
}
