/** Test and live mode of Stripe: one database is of one of them. */
import type { ProviderCustomers } from '../../internal/billing/ports.ts'
import { modeOf } from '../../internal/payments/stripe/mode.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { claimProviderMode, createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { ConfigError } from '../config/config.ts'

/**
 * Stripe's customers in this database. Rejects with ConfigError when accounts are customers in the other mode: credits that
 * the test mode brought were never paid.
 */
export async function stripeCustomers(db: Database, key: string): Promise<ProviderCustomers> {
  const mode = modeOf(key)
  const claimed = await claimProviderMode(db, 'stripe', mode)
  if (claimed !== mode) {
    throw new ConfigError(
      `PENSTOCK_STRIPE_KEY: is of the ${mode} mode, and this database has customers of the ${claimed} mode`,
    )
  }
  return createProviderCustomers(db, mode)
}
