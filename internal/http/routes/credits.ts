import type { Principal } from '../../domain/principal.ts'
import { body, limit } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of credits that these rows call. */
export interface CreditsService {
  /** `{customerId, credits, creditLimit, creditsUsedThisMonth, lastResetAt}`. */
  read(principal: Principal): Promise<unknown>
  /** `{customerId, creditsAdded, newBalance}`; `amount` is an integer from 1 to 100000. */
  add(principal: Principal, input: { amount: number }): Promise<unknown>
  /** `{transactions}`, newest first; 403 for a key that is limited to projects. */
  transactions(principal: Principal, page: { limit: number }): Promise<unknown>
}

/**
 * docs/reference/api.md, "Credits". `local`: whether credits can be granted by hand; elsewhere there is no such
 * route.
 */
export function creditRoutes(credits: CreditsService, local: boolean): Route[] {
  const everywhere = [read(credits), transactions(credits)]
  return local ? [...everywhere, add(credits)] : everywhere
}

function read(credits: CreditsService): Route {
  return route({
    method: 'GET',
    path: '/v1/admin/credits',
    operationId: 'readCredits',
    summary: 'Read the balance',
    action: 'read',
    answers: { status: 200, schema: 'Credits' },
    errors: ['customerNotFound'],
    handler: async (call) => ({ status: 200, body: await credits.read(call.principal) }),
  })
}

function transactions(credits: CreditsService): Route {
  return route<unknown, { limit: number }, unknown>({
    method: 'GET',
    path: '/v1/admin/credits/transactions',
    operationId: 'listCreditTransactions',
    summary: 'List what moved the balance',
    action: 'read',
    query: { limit: limit(50) },
    answers: { status: 200, schema: 'CreditTransactions' },
    errors: ['projectForeign'],
    handler: async ({ principal, query }) => ({
      status: 200,
      body: await credits.transactions(principal, { limit: query.limit }),
    }),
  })
}

function add(credits: CreditsService): Route {
  return route<unknown, unknown, { amount: number }>({
    method: 'POST',
    path: '/v1/admin/credits/add',
    operationId: 'addCredits',
    summary: 'Grant credits (local instance only)',
    action: 'addCredits',
    body: body(
      'Credits to grant.',
      {
        amount: { type: 'integer', description: 'Credits.', minimum: 1, maximum: 100_000 },
      },
      ['amount'],
    ),
    answers: { status: 200, schema: 'CreditGrant' },
    errors: ['customerNotFound', 'routeNotFound'],
    handler: async (call) => ({ status: 200, body: await credits.add(call.principal, call.body) }),
  })
}
