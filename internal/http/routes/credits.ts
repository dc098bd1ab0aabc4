import type { Principal } from '../../domain/principal.ts'
import { body } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of credits that these rows call. */
export interface CreditsService {
  /** `{customerId, credits, creditLimit, creditsUsedThisMonth, lastResetAt}`. */
  read(principal: Principal): Promise<unknown>
  /** `{customerId, creditsAdded, newBalance}`; `amount` is an integer from 1 to 100000. */
  add(principal: Principal, input: { amount: number }): Promise<unknown>
}

/** Specification, "Credits". `local`: whether credits can be granted by hand; elsewhere there is no such route. */
export function creditRoutes(credits: CreditsService, local: boolean): Route[] {
  return local ? [read(credits), add(credits)] : [read(credits)]
}

function read(credits: CreditsService): Route {
  return route({
    method: 'GET',
    path: '/v1/admin/credits',
    summary: 'Read the balance',
    action: 'read',
    customerId: 'optional',
    answers: { status: 200, schema: 'Credits' },
    errors: [],
    handler: async (call) => ({ status: 200, body: await credits.read(call.principal) }),
  })
}

function add(credits: CreditsService): Route {
  return route<unknown, unknown, { amount: number }>({
    method: 'POST',
    path: '/v1/admin/credits/add',
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
    errors: [404],
    handler: async (call) => ({ status: 200, body: await credits.add(call.principal, call.body) }),
  })
}
