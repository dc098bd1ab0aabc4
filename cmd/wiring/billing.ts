/** Billing: what is on sale, subscriptions, invoices, credits. */
import { readFileSync } from 'node:fs'
import { type Catalogue, parseCatalogue } from '../../internal/billing/catalogue.ts'
import { createCreditPacks } from '../../internal/billing/credit-packs.ts'
import { createCredits } from '../../internal/billing/credits.ts'
import { createInvoices } from '../../internal/billing/invoices.ts'
import { createPlans } from '../../internal/billing/plans.ts'
import type { PaymentProvider } from '../../internal/billing/ports.ts'
import { createSubscriptions } from '../../internal/billing/subscription.ts'
import { createCatalogueStore } from '../../internal/postgres/catalogue.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createCreditAccounts } from '../../internal/postgres/credits.ts'
import { createInvoiceStore } from '../../internal/postgres/invoices.ts'
import { createSubscriptionStore } from '../../internal/postgres/subscriptions.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { ConfigError } from '../config/config.ts'
import { type LedgerOfNode, reportedAccounts } from './reported.ts'

export interface BillingOptions {
  db: Database
  clock: Clock
  local: boolean
  /** undefined: what needs one answers 503. */
  provider: PaymentProvider | undefined
  ledger: LedgerOfNode
}

/** The use cases of the management API. */
export function createBilling({ db, clock, local, provider, ledger }: BillingOptions) {
  const credited = (customerId: string) => ledger.credited(customerId)
  const catalogue = createCatalogueStore(db)
  const subscriptions = createSubscriptionStore(db)
  return {
    credits: createCredits({ accounts: reportedAccounts(ledger, createCreditAccounts(db)), local, credited }),
    creditPacks: createCreditPacks({ catalogue, subscriptions, provider, clock }),
    plans: createPlans({ catalogue, subscriptions, clock, provider }),
    subscriptions: createSubscriptions({ subscriptions, provider }),
    invoices: createInvoices({ invoices: createInvoiceStore(db) }),
  }
}

const DEFAULT_CATALOGUE = new URL('../../internal/billing/catalogue/default.json', import.meta.url)

/** The catalogue of a file, or the one that comes with the service. Throws ConfigError in one line. */
export function readCatalogue(file: string | undefined): Catalogue {
  const parsed = parseCatalogue(readCatalogueFile(file ?? DEFAULT_CATALOGUE))
  if (!parsed.ok) throw new ConfigError(`PENSTOCK_CATALOG: ${parsed.error}`)
  return parsed.value
}

function readCatalogueFile(file: string | URL): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new ConfigError(`PENSTOCK_CATALOG: ${(error as Error).message}`)
  }
}

/** Makes the stored catalogue this one. Several nodes may do it at once. */
export function publishCatalogue(db: Database, catalogue: Catalogue): Promise<void> {
  return createCatalogueStore(db).publish(catalogue)
}
