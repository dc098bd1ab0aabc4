/** Reads at Stripe, now, what may have been missed: as nodes do at their start and hourly, and beside them. */
import { join } from 'node:path'

import { createProviderEvents, type ProviderEventReports } from '../../internal/billing/provider-events.ts'
import { createProviderSweep } from '../../internal/billing/provider-sweep.ts'
import type { ObjectReference } from '../../internal/billing/readings.ts'
import { addressIn } from '../../internal/embedded/postgres-server.ts'
import { createStripeProvider } from '../../internal/payments/stripe/provider.ts'
import { createCatalogueStore } from '../../internal/postgres/catalogue.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { checkSchema } from '../../internal/postgres/migrate.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { createProviderSweeps } from '../../internal/postgres/provider-sweeps.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { Config, StripeConfig } from '../config/config.ts'
import { stripeCustomers } from '../wiring/stripe-mode.ts'

/** `isFine`: everything that was read is applied. Rejects when Stripe or Postgres is away. */
export async function sweep(
  config: Config,
  settings: StripeConfig,
): Promise<{ lines: string[]; isFine: boolean }> {
  const databaseUrl = config.databaseUrl ?? addressIn(join(config.dataDir, 'postgres'))
  if (databaseUrl === undefined) {
    throw new Error(`no database in ${config.dataDir}: start Penstock first, or set PENSTOCK_DATABASE_URL`)
  }
  const db = connect(databaseUrl, { max: 2 })
  try {
    await checkSchema(db)
    return await sweepInto(db, settings)
  } finally {
    await db.end({ timeout: 2 })
  }
}

async function sweepInto(
  db: Database,
  settings: StripeConfig,
): Promise<{ lines: string[]; isFine: boolean }> {
  const clock = systemClock()
  const provider = createStripeProvider({
    ...settings,
    catalogue: createCatalogueStore(db),
    customers: await stripeCustomers(db, settings.key),
    // Only a checkout makes customers.
    onCustomerReplaced: () => {},
    clock,
  })
  const lines: string[] = []
  const events = createProviderEvents({
    provider,
    log: createReadingLog(db),
    // The balance is in Postgres; nodes learn of it when they ask.
    credited: () => {},
    reports: reportsInto(lines),
  })
  const result = await createProviderSweep({
    provider,
    sweeps: createProviderSweeps(db),
    events,
    clock,
    onFailed: (error) => lines.push(String(error)),
  }).run(0)
  if (result === undefined) return { lines: ['a node sweeps at the moment: try again later'], isFine: false }
  const { read, later } = result
  return {
    lines: [...lines, `${read} objects read, ${later} of them cannot be applied yet`],
    isFine: later === 0,
  }
}

function reportsInto(lines: string[]): ProviderEventReports {
  const name = ({ kind, id }: ObjectReference) => `${kind} ${id}`
  return {
    unusable: ({ reference, reason }) => lines.push(`${name(reference)}: ${reason}`),
    stranger: ({ reference, customerId }) =>
      lines.push(`${name(reference)}: names ${customerId}, who does not pay for it`),
    secondSubscription: ({ subscriptionId, customerId, refused }) =>
      lines.push(
        refused.length === 0
          ? `subscription ${subscriptionId}: a second one of ${customerId}, ended and paid back`
          : `subscription ${subscriptionId}: a second one of ${customerId}, ended, not paid back: ${refused.join(', ')}`,
      ),
  }
}
