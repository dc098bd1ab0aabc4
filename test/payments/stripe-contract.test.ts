import { expect } from 'chai'
import { createNotifications } from '../../internal/billing/notifications.ts'
import { createProviderEvents } from '../../internal/billing/provider-events.ts'
import { BodyShares } from '../../internal/http/body-shares.ts'
import { paymentRoute } from '../../internal/http/payments.ts'
import { createStripeProvider } from '../../internal/payments/stripe/provider.ts'
import { createCatalogueStore } from '../../internal/postgres/catalogue.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { startService } from '../http/service.ts'
import { insertPack, insertPlan } from '../support/billing-rows.ts'
import { freshDatabase } from '../support/servers.ts'
import { startStripeDouble } from '../support/stripe/double.ts'
import { stripeSchema } from '../support/stripe/mock.ts'
import type { World } from './contract/buyer.ts'
import { contractOf } from './contract.ts'

const SECRET = 'whsec_contract'
const idOf = (url: string) => new URL(url).pathname.split('/').at(-1)!

contractOf('Stripe', { hasTax: true }, async (): Promise<World> => {
  const databaseUrl = await freshDatabase()
  const db = connect(databaseUrl, { max: 8 })
  let earlier = new Set<string>()
  const double = await startStripeDouble({ secret: SECRET, schema: stripeSchema() })
  const basic = double.sell({ amounts: { brl: 1_000 }, recurring: 'month' })
  const large = double.sell({ amounts: { brl: 5_000 }, recurring: 'month', lookupKey: 'large-monthly' })
  const fifty = double.sell({ amounts: { brl: 500 } })
  const [prices, more] = [{ BRL: 1_000 }, { BRL: 5_000 }]
  await insertPlan(db, { planId: 'basic', prices, creditsPerCycle: 100, offerId: basic.id })
  await insertPlan(db, { planId: 'large', prices: more, creditsPerCycle: 1_000, offerId: 'large-monthly' })
  await insertPack(db, { packId: 'fifty', credits: 50, offerId: fifty.id })
  const offers: Record<string, string> = { basic: basic.id, large: large.id }
  const clock = systemClock()
  const reported: string[] = []
  const provider = createStripeProvider({
    key: 'sk_test_contract',
    webhookSecrets: [SECRET],
    returnUrl: 'https://shop.example/billing',
    catalogue: createCatalogueStore(db),
    customers: createProviderCustomers(db),
    onCustomerReplaced: () => reported.push('replaced'),
    clock,
    origin: double.origin,
  })
  const events = createProviderEvents({
    provider,
    log: createReadingLog(db),
    credited: () => {},
    reports: {
      unusable: ({ reason }) => reported.push(`unusable: ${reason}`),
      stranger: () => reported.push('stranger'),
      secondSubscription: () => reported.push('second'),
    },
  })
  const route = paymentRoute({
    name: 'stripe',
    notifications: createNotifications({ provider, events, clock }),
    clock,
    bodies: new BodyShares(10_000_000, systemClock()),
    onRefused: (reason) => reported.push(`refused: ${reason}`),
  })
  const service = await startService({ databaseUrl, provider, initialCredits: 0, others: [route] })
  double.deliverTo = `${service.url}/v1/payments/stripe`
  return {
    provider,
    service,
    db,
    reported,
    async pay(url, outcome, choice = {}) {
      await double.completeCheckout(url, outcome, choice)
    },
    advance: (days) => double.advance(days),
    async act(subscriptionId, action, planId, outcome) {
      if (action === 'cancel') await double.cancel(subscriptionId)
      else if (action === 'cancel-now') await double.cancel(subscriptionId, { now: true })
      else if (action === 'resume') await double.resume(subscriptionId)
      else if (action === 'fail-payment') double.failPayment(subscriptionId)
      else await double.changePlan(subscriptionId, offers[planId!]!, outcome)
    },
    async refund(invoiceId, checkoutUrl, amountInCents) {
      await double.refund(checkoutUrl === undefined ? invoiceId : idOf(checkoutUrl), amountInCents)
    },
    dispute: (invoiceId, outcome) => double.dispute(invoiceId, outcome),
    async begin() {
      earlier = new Set(double.events().map(({ id }) => id))
    },
    async repeatAll() {
      const since = double.events().filter(({ id }) => !earlier.has(id))
      expect(since).not.to.deep.equal([])
      for (const { id } of since) await double.repeat(id)
    },
    losing: (losing) => double.losing(losing),
    async close() {
      await service.stop()
      await db.end()
      await double.stop()
    },
  }
})
