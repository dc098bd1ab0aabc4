import { type AnalyticsService, analyticsRoutes } from './analytics.ts'
import { type ApiKeysService, apiKeyRoutes } from './api-keys.ts'
import { type AuditService, auditRoutes } from './audit.ts'
import { type BufferStatesService, bufferStateRoutes } from './buffer-states.ts'
import { type BuffersService, bufferRoutes } from './buffers.ts'
import { type CreditPacksService, creditPackRoutes } from './credit-packs.ts'
import { type CreditsService, creditRoutes } from './credits.ts'
import { type CustomersService, customerRoutes } from './customers.ts'
import { type DeadLettersService, deadLetterRoutes } from './dead-letters.ts'
import { type InvoicesService, invoiceRoutes } from './invoices.ts'
import { type PlansService, planRoutes } from './plans.ts'
import { type ProjectsService, projectRoutes } from './projects.ts'
import type { Route } from './route.ts'
import { type SubscriptionsService, subscriptionRoutes } from './subscription.ts'

/** The use cases behind the management API; each resource declares what it calls. */
export interface Services {
  customers: CustomersService
  projects: ProjectsService
  buffers: BuffersService
  bufferStates: BufferStatesService
  apiKeys: ApiKeysService
  audit: AuditService
  credits: CreditsService
  creditPacks: CreditPacksService
  plans: PlansService
  subscriptions: SubscriptionsService
  invoices: InvoicesService
  deadLetters: DeadLettersService
  analytics: AnalyticsService
  /** Whether this is the local instance (docs/architecture/protocol.md, "The local instance"). */
  local: boolean
}

/** Every management endpoint: what is not in here does not exist, and what is gets validated and documented. */
export function adminTable(services: Services): Route[] {
  return [
    ...customerRoutes(services.customers),
    ...projectRoutes(services.projects),
    ...bufferRoutes(services.buffers),
    ...bufferStateRoutes(services.bufferStates),
    ...apiKeyRoutes(services.apiKeys),
    ...auditRoutes(services.audit),
    ...creditRoutes(services.credits, services.local),
    ...creditPackRoutes(services.creditPacks),
    ...planRoutes(services.plans),
    ...subscriptionRoutes(services.subscriptions),
    ...invoiceRoutes(services.invoices),
    ...deadLetterRoutes(services.deadLetters),
    ...analyticsRoutes(services.analytics),
  ]
}
