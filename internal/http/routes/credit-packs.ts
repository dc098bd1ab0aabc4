import { DEFAULT_CURRENCY } from '../../domain/currency.ts'
import type { Principal } from '../../domain/principal.ts'
import { type Route, route } from './route.ts'

/** The use case of credit packs that these rows call. */
export interface CreditPacksService {
  /** `{currency, currencies, packs}`; 400 `unsupported_currency`. */
  list(currency: string): Promise<unknown>
  /** `{checkoutUrl, packId, credits}`. */
  checkoutUrl(principal: Principal, packId: string): Promise<unknown>
}

/** docs/reference/api.md, "Credit packs". */
export function creditPackRoutes(packs: CreditPacksService): Route[] {
  return [list(packs), checkoutUrl(packs)]
}

function list(packs: CreditPacksService): Route {
  return route<unknown, { currency: string }, unknown>({
    method: 'GET',
    path: '/v1/admin/credit-packs',
    operationId: 'listCreditPacks',
    summary: 'List the credit packs on sale',
    action: 'read',
    // No enum: the use case refuses what is not supported, with a code of its own.
    query: { currency: { type: 'string', description: 'BRL or USD.', default: DEFAULT_CURRENCY } },
    answers: { status: 200, schema: 'CreditPacks' },
    errors: ['currencyUnsupported'],
    handler: async ({ query }) => ({ status: 200, body: await packs.list(query.currency) }),
  })
}

function checkoutUrl(packs: CreditPacksService): Route {
  return route<{ packId: string }, unknown, unknown>({
    method: 'GET',
    path: '/v1/admin/credit-packs/{packId}/checkout-url',
    operationId: 'readCreditPackCheckout',
    summary: 'Where to buy a credit pack',
    action: 'checkout',
    notFound: 'packNotFound',
    answers: { status: 200, schema: 'PackCheckout' },
    waitsFor: 'payment-provider',
    errors: ['subscriptionRequired', 'packUnavailable', 'providerUnconfigured', 'providerUnavailable'],
    handler: async ({ principal, params }) => ({
      status: 200,
      body: await packs.checkoutUrl(principal, params.packId),
    }),
  })
}
