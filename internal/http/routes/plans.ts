import type { Principal } from '../../domain/principal.ts'
import { identifier } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of plans that these rows call. */
export interface PlansService {
  list(): Promise<unknown>
  /** `{checkoutUrl, planId, planName}`. */
  checkoutUrl(principal: Principal, planId: string): Promise<unknown>
}

/** docs/reference/api.md, "Plans". */
export function planRoutes(plans: PlansService): Route[] {
  return [list(plans), checkoutUrl(plans)]
}

function list(plans: PlansService): Route {
  return route({
    method: 'GET',
    path: '/v1/admin/plans',
    operationId: 'listPlans',
    summary: 'List the plans',
    action: 'read',
    answers: { status: 200, schema: 'Plan', array: true },
    errors: [],
    handler: async () => ({ status: 200, body: await plans.list() }),
  })
}

function checkoutUrl(plans: PlansService): Route {
  return route<unknown, { planId: string }, unknown>({
    method: 'GET',
    path: '/v1/admin/subscription/checkout-url',
    operationId: 'readPlanCheckout',
    summary: 'Where to subscribe to a plan',
    action: 'checkout',
    query: { planId: identifier('The plan') },
    queryRequired: ['planId'],
    answers: { status: 200, schema: 'PlanCheckout' },
    waitsFor: 'payment-provider',
    errors: [
      'planInactive',
      'planNotFound',
      'planWithoutCheckout',
      'subscriptionExists',
      'providerUnconfigured',
      'providerUnavailable',
    ],
    handler: async ({ principal, query }) => ({
      status: 200,
      body: await plans.checkoutUrl(principal, query.planId),
    }),
  })
}
