/** The webhook endpoint at Stripe: where it sends which events, in which version. */

import type Stripe from 'stripe'
import { STRIPE_API_VERSION } from './client.ts'
import { eventTypes } from './events.ts'

type Endpoint = Stripe.WebhookEndpoint
type EnabledEvent = Stripe.WebhookEndpointCreateParams.EnabledEvent

/** Where this installation takes notifications (internal/http/payments.ts). */
export const NOTIFICATION_PATH = '/v1/payments/stripe'
/** An account of Stripe has fewer. */
const MOST_ENDPOINTS = 100

export interface Registered {
  id: string
  url: string
  /** Shown once, when it is made; undefined: it was there before. */
  secret: string | undefined
  /** Ids of endpoints of the same URL in another version: to be removed once the new secret is configured. */
  outdated: string[]
}

/** `base`: the address of the management API. An endpoint that is there already gets exactly these events. */
export async function registerEndpoint(stripe: Stripe, base: string): Promise<Registered> {
  const url = notificationUrl(base)
  const endpoints = (await endpointsOf(stripe)).filter((each) => each.url === url)
  const found = endpoints.find(isOfThisVersion)
  const outdated = endpoints.filter((each) => !isOfThisVersion(each)).map(({ id }) => id)
  const events = [...eventTypes] as EnabledEvent[]
  if (found !== undefined) {
    if (faultsOf(found).length > 0) {
      await stripe.webhookEndpoints.update(found.id, { enabled_events: events, disabled: false })
    }
    return { id: found.id, url, secret: undefined, outdated }
  }
  const made = await stripe.webhookEndpoints.create({
    url,
    enabled_events: events,
    api_version: STRIPE_API_VERSION,
    description: 'Penstock',
  })
  return { id: made.id, url, secret: made.secret, outdated }
}

/** One line a fault of the endpoints that lead to an installation, whichever it is. */
export async function endpointFaults(stripe: Stripe): Promise<string[]> {
  const endpoints = (await endpointsOf(stripe)).filter(({ url }) => url.endsWith(NOTIFICATION_PATH))
  if (endpoints.length === 0) {
    return [`no webhook endpoint leads to …${NOTIFICATION_PATH}: npm run payments -- register https://…`]
  }
  return endpoints.flatMap((endpoint) =>
    faultsOf(endpoint).map((fault) => `endpoint ${endpoint.id} (${endpoint.url}): ${fault}`),
  )
}

export function notificationUrl(base: string): string {
  const bare = base.replace(/\/+$/, '')
  return bare.endsWith(NOTIFICATION_PATH) ? bare : `${bare}${NOTIFICATION_PATH}`
}

async function endpointsOf(stripe: Stripe): Promise<Endpoint[]> {
  return await stripe.webhookEndpoints.list({ limit: 100 }).autoPagingToArray({ limit: MOST_ENDPOINTS })
}

function isOfThisVersion({ api_version }: Endpoint): boolean {
  return api_version === STRIPE_API_VERSION
}

function faultsOf(endpoint: Endpoint): string[] {
  const { status, api_version, enabled_events: enabled } = endpoint
  const missing = eventTypes.filter((type) => !enabled.includes(type))
  const extra = enabled.filter((type) => !eventTypes.includes(type))
  return [
    ...(status === 'enabled' ? [] : [`it is ${status}`]),
    ...(isOfThisVersion(endpoint)
      ? []
      : [`its version is ${api_version ?? "the account's"}, not ${STRIPE_API_VERSION}`]),
    ...(missing.length === 0 ? [] : [`it does not send ${missing.join(', ')}`]),
    ...(extra.length === 0 ? [] : [`it also sends ${extra.join(', ')}`]),
  ]
}
