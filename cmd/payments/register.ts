/** Makes the webhook endpoint, and says what is left to do. */
import type Stripe from 'stripe'
import { registerEndpoint } from '../../internal/payments/stripe/endpoint.ts'

/** The secret is in the lines when the endpoint is new. It is shown here once. */
export async function register(stripe: Stripe, base: string): Promise<string[]> {
  const { id, url, secret, outdated } = await registerEndpoint(stripe, base)
  const old = outdated.map(
    (each) =>
      `${each} is of another version: keep both secrets until this one is used, then remove it at Stripe`,
  )
  if (secret === undefined) return [`${id} was there, and sends to ${url}`, ...old]
  return [`${id} sends to ${url}`, `PENSTOCK_STRIPE_WEBHOOK_SECRETS=${secret}`, ...old]
}
