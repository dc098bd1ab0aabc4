import { customerSchema, projectSchema, whoAmISchema } from './accounts.ts'
import { analyticsSummarySchema, analyticsTimeseriesSchema } from './analytics.ts'
import { apiKeySchema, createdApiKeySchema } from './api-keys.ts'
import { auditPageSchema } from './audit.ts'
import { bufferStatesSchema } from './buffer-states.ts'
import { bufferTestSchema } from './buffer-test.ts'
import { bufferSchema } from './buffers.ts'
import {
  creditGrantSchema,
  creditPacksSchema,
  creditsSchema,
  creditTransactionsSchema,
  packCheckoutSchema,
} from './credits.ts'
import { deliveryBatchSchema, dlqItemSchema } from './dead-letters.ts'
import { dlqRetrySchema } from './dlq-retry.ts'
import { deliveryFailedSchema, errorSchema, insufficientCreditsSchema } from './errors.ts'
import { acceptedSchema, healthSchema, serviceEntrySchema } from './ingest.ts'
import { invoiceSchema } from './invoices.ts'
import { planCheckoutSchema, planSchema } from './plans.ts'
import type { Schema } from './shape.ts'
import {
  billingPortalSchema,
  cancelledSubscriptionSchema,
  currentSubscriptionSchema,
  notificationReceivedSchema,
} from './subscription.ts'

/**
 * Every body that the service answers, by the name that the rows of the route table give in `answers.schema`.
 * The OpenAPI document shows them under `components.schemas`, and every answer of a test is held against them.
 */
export const responseSchemas = {
  Accepted: acceptedSchema,
  AnalyticsSummary: analyticsSummarySchema,
  AnalyticsTimeseries: analyticsTimeseriesSchema,
  ApiKey: apiKeySchema,
  AuditPage: auditPageSchema,
  BillingPortal: billingPortalSchema,
  Buffer: bufferSchema,
  BufferStates: bufferStatesSchema,
  BufferTest: bufferTestSchema,
  CancelledSubscription: cancelledSubscriptionSchema,
  CreatedApiKey: createdApiKeySchema,
  CreditGrant: creditGrantSchema,
  CreditPacks: creditPacksSchema,
  Credits: creditsSchema,
  CreditTransactions: creditTransactionsSchema,
  CurrentSubscription: currentSubscriptionSchema,
  Customer: customerSchema,
  DeliveryBatch: deliveryBatchSchema,
  DeliveryFailed: deliveryFailedSchema,
  DlqItem: dlqItemSchema,
  DlqRetry: dlqRetrySchema,
  Error: errorSchema,
  Health: healthSchema,
  InsufficientCredits: insufficientCreditsSchema,
  Invoice: invoiceSchema,
  NotificationReceived: notificationReceivedSchema,
  PackCheckout: packCheckoutSchema,
  Plan: planSchema,
  PlanCheckout: planCheckoutSchema,
  Project: projectSchema,
  ServiceEntry: serviceEntrySchema,
  WhoAmI: whoAmISchema,
} as const satisfies Readonly<Record<string, Schema>>

export type SchemaName = keyof typeof responseSchemas
