/**
 * Asking a payment provider that may be missing or fail (existence and state come first:
 * docs/architecture/protocol.md, "Admin requests").
 */

import { ServiceError } from '../domain/errors.ts'
import type { PaymentProvider } from './ports.ts'

/** 503 when none is configured, and 503 with `Retry-After` when it does not do what it is asked. */
export async function askProvider<T>(
  provider: PaymentProvider | undefined,
  ask: (provider: PaymentProvider) => Promise<T>,
): Promise<T> {
  if (provider === undefined) throw new ServiceError('providerUnconfigured')
  try {
    return await ask(provider)
  } catch (cause) {
    throw new ServiceError('providerUnavailable', {}, { cause })
  }
}

/** Whether there is something to buy, whether or not a provider is configured (docs/architecture/billing.md). */
export function isOffered(
  { offerId }: { offerId: string | null },
  provider: PaymentProvider | undefined,
): boolean {
  return offerId !== null || provider?.sellsWithoutOffer === true
}
