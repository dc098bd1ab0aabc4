import type { Principal } from '../../domain/principal.ts'
import { body } from './fields.ts'
import { type Route, route } from './route.ts'

interface Cancellation {
  reason?: string
}

/** The use case of a customer's subscription that these rows call. */
export interface SubscriptionsService {
  /** `{subscription, plan}`, both null when there is none. */
  read(principal: Principal): Promise<unknown>
  /** `{message, endsAt, status}`. */
  cancelAtPeriodEnd(principal: Principal, cancellation: Cancellation): Promise<unknown>
  cancelNow(principal: Principal, cancellation: Cancellation): Promise<void>
  /** `{portalUrl}`. */
  portalUrl(principal: Principal): Promise<unknown>
}

const PATH = '/v1/admin/subscription'

const cancellation = body('Why it is cancelled.', {
  reason: { type: 'string', description: 'In words of its customer.', maxLength: 1000, storable: true },
})

/** docs/reference/api.md, "Subscriptions". */
export function subscriptionRoutes(subscriptions: SubscriptionsService): Route[] {
  return [
    read(subscriptions),
    cancelAtPeriodEnd(subscriptions),
    cancelNow(subscriptions),
    portalUrl(subscriptions),
  ]
}

function read(subscriptions: SubscriptionsService): Route {
  return route({
    method: 'GET',
    path: PATH,
    operationId: 'readSubscription',
    summary: 'Read the subscription and its plan',
    action: 'read',
    answers: { status: 200, schema: 'CurrentSubscription' },
    errors: [],
    handler: async ({ principal }) => ({ status: 200, body: await subscriptions.read(principal) }),
  })
}

function cancelAtPeriodEnd(subscriptions: SubscriptionsService): Route {
  return route<unknown, unknown, Cancellation>({
    method: 'DELETE',
    path: PATH,
    operationId: 'cancelSubscription',
    summary: 'Cancel the subscription at the end of its period',
    action: 'cancelAtPeriodEnd',
    onlyEnds: true,
    body: cancellation,
    bodyOptional: true,
    answers: { status: 200, schema: 'CancelledSubscription' },
    waitsFor: 'payment-provider',
    errors: [
      'projectForeign',
      'subscriptionNotFound',
      'subscriptionCancelling',
      'subscriptionCancelled',
      'providerUnconfigured',
      'providerUnavailable',
    ],
    handler: async (call) => ({
      status: 200,
      body: await subscriptions.cancelAtPeriodEnd(call.principal, call.body),
    }),
  })
}

function cancelNow(subscriptions: SubscriptionsService): Route {
  return route<unknown, unknown, Cancellation>({
    method: 'DELETE',
    path: `${PATH}/immediate`,
    operationId: 'cancelSubscriptionNow',
    summary: 'Cancel the subscription now',
    action: 'cancelImmediately',
    body: cancellation,
    bodyOptional: true,
    answers: { status: 204 },
    waitsFor: 'payment-provider',
    errors: [
      'projectForeign',
      'subscriptionNotFound',
      'subscriptionCancelling',
      'subscriptionCancelled',
      'providerUnconfigured',
      'providerUnavailable',
    ],
    async handler(call) {
      await subscriptions.cancelNow(call.principal, call.body)
      return { status: 204 }
    },
  })
}

function portalUrl(subscriptions: SubscriptionsService): Route {
  return route({
    method: 'GET',
    path: `${PATH}/portal-url`,
    operationId: 'readBillingPortal',
    summary: 'Where to manage the subscription and the ways to pay',
    action: 'checkout',
    answers: { status: 200, schema: 'BillingPortal' },
    waitsFor: 'payment-provider',
    errors: ['projectForeign', 'portalNotFound', 'providerUnconfigured', 'providerUnavailable'],
    handler: async ({ principal }) => ({ status: 200, body: await subscriptions.portalUrl(principal) }),
  })
}
