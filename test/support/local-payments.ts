/** The local payment provider over a database, with the catalogue that comes along. */
import { readFileSync } from 'node:fs'
import { parseCatalogue } from '../../internal/billing/catalogue.ts'
import type { Notification, ProviderCustomers } from '../../internal/billing/ports.ts'
import { createLocalProvider, type LocalProvider } from '../../internal/payments/local/local-provider.ts'
import type { SignedNotification } from '../../internal/payments/local/ports.ts'
import type { LocalState } from '../../internal/payments/local/state.ts'
import { createCatalogueStore } from '../../internal/postgres/catalogue.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createLocalPaymentStore } from '../../internal/postgres/local-payments.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'

const CATALOGUE = new URL('../../internal/billing/catalogue/default.json', import.meta.url)

export const BASE_URL = 'http://127.0.0.1:8080'

/** What the provider told, and what becomes of that. */
export class Told {
  readonly notifications: SignedNotification[] = []
  readonly problems: unknown[] = []
  /** Whether it is acknowledged; what it throws is thrown. */
  acknowledge: (notification: SignedNotification) => boolean | Promise<boolean> = () => true

  get bodies() {
    return this.notifications.map(({ body }) => JSON.parse(Buffer.from(body).toString()))
  }
}

/** `now`: real time, Unix ms; default: that of the machine. */
export function localProviderOver(
  db: Database,
  told: Told,
  { now }: { now?: () => number } = {},
): LocalProvider {
  const clock = systemClock()
  return createLocalProvider({
    store: createLocalPaymentStore<LocalState>(db),
    catalogue: createCatalogueStore(db),
    customers: rememberedCustomers(),
    baseUrl: () => BASE_URL,
    deliver: async (notification) => {
      told.notifications.push(notification)
      return told.acknowledge(notification)
    },
    clock: now === undefined ? clock : { ...clock, now },
    randomness: systemRandomness(),
    onProblem: (error) => told.problems.push(error),
  })
}

/** All that comes with the service is on sale. */
export async function publishDefaultCatalogue(db: Database): Promise<void> {
  const parsed = parseCatalogue(readFileSync(CATALOGUE))
  if (!parsed.ok) throw new Error(parsed.error)
  await createCatalogueStore(db).publish(parsed.value)
}

/** As it would arrive. */
export function arrived({ body, headers }: SignedNotification): Notification {
  return { body, header: (name) => headers[name] }
}

function rememberedCustomers(): ProviderCustomers {
  const known = new Map<string, string>()
  return {
    find: async (_, customerId) => known.get(customerId),
    async keep(_, customerId, providerCustomerId) {
      const kept = known.get(customerId) ?? providerCustomerId
      known.set(customerId, kept)
      return kept
    },
    replace: () => Promise.reject(new Error('customers of the local provider are never deleted')),
  }
}
