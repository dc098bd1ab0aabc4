import { expect } from 'chai'
import { createNotifications } from '../../internal/billing/notifications.ts'
import { createProviderEvents } from '../../internal/billing/provider-events.ts'
import { createLocalProvider, type LocalProvider } from '../../internal/payments/local/local-provider.ts'
import { createCatalogueStore } from '../../internal/postgres/catalogue.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { createLocalPaymentStore } from '../../internal/postgres/local-payments.ts'
import { createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import { startService } from '../http/service.ts'
import { insertPack, insertPlan } from '../support/billing-rows.ts'
import { freshDatabase } from '../support/servers.ts'
import type { World } from './contract/buyer.ts'
import { contractOf } from './contract.ts'

const idOf = (url: string) => new URL(url).pathname.split('/').at(-1)!

contractOf('local', { hasTax: false }, async (): Promise<World> => {
  const databaseUrl = await freshDatabase()
  const db = connect(databaseUrl, { max: 8 })
  await insertPlan(db, { planId: 'basic', prices: { BRL: 1_000 }, creditsPerCycle: 100 })
  await insertPlan(db, { planId: 'large', prices: { BRL: 5_000 }, creditsPerCycle: 1_000 })
  await insertPack(db, { packId: 'fifty', credits: 50 })
  const clock = systemClock()
  const reported: string[] = []
  let isLosing = false
  let earlier = new Set<string>()
  const provider: LocalProvider = createLocalProvider({
    store: createLocalPaymentStore(db),
    catalogue: createCatalogueStore(db),
    customers: createProviderCustomers(db),
    baseUrl: () => 'http://127.0.0.1:1',
    async deliver({ body, headers }) {
      return isLosing || (await notifications.take({ body, header: (name) => headers[name] })) === 'taken'
    },
    clock,
    randomness: systemRandomness(),
    onProblem: (error) => reported.push(String(error)),
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
  const notifications = createNotifications({ provider, events, clock })
  const service = await startService({ databaseUrl, provider, initialCredits: 0 })
  return {
    provider,
    service,
    db,
    reported,
    async pay(url, outcome, { amountInCents } = {}) {
      await provider.choose(idOf(url), { outcome, ...(amountInCents !== undefined && { amountInCents }) })
    },
    async advance(days) {
      await provider.advance(days)
    },
    async act(subscriptionId, action, planId, outcome) {
      const asked = { ...(planId !== undefined && { planId }), ...(outcome !== undefined && { outcome }) }
      await provider.act(subscriptionId, { action, ...asked })
    },
    async refund(invoiceId, _checkout, amountInCents) {
      await provider.refund(invoiceId, amountInCents)
    },
    async dispute(invoiceId, outcome) {
      await provider.dispute(invoiceId, outcome)
    },
    async begin() {
      earlier = new Set((await provider.events()).map(({ eventId }) => eventId))
    },
    async repeatAll() {
      const since = (await provider.events()).filter(({ eventId }) => !earlier.has(eventId))
      expect(since).not.to.deep.equal([])
      for (const { eventId } of since) await provider.repeat(eventId)
    },
    losing(losing) {
      isLosing = losing
    },
    async close() {
      await service.stop()
      await db.end()
    },
  }
})
