import { AT } from './account.ts'

/** What the service answers about money, by the name of the schema. */

const MONTH_MS = 2_592_000_000

const PLAN = {
  planId: 'basic',
  name: 'Basic',
  priceInCents: 4900,
  currency: 'BRL',
  prices: { BRL: 4900, USD: 900 },
  creditsPerCycle: 10_000,
  isActive: true,
}

const SUBSCRIPTION = {
  subscriptionId: 'sub_1',
  customerId: 'acme',
  planId: 'basic',
  status: 'ACTIVE',
  currentPeriodStart: AT,
  currentPeriodEnd: AT + MONTH_MS,
  autoRenew: true,
}

const PACK = {
  packId: 'pack-1k',
  credits: 1000,
  priceInCents: 90,
  currency: 'USD',
  pricePer1kCents: 90,
  tier: { planId: 'basic', name: 'Basic', priceInCents: 900, creditsPerCycle: 10_000 },
  available: true,
  betterValue: null,
}

export const billingExamples = {
  BillingPortal: { portalUrl: 'https://payments.example/portal/acme' },
  CancelledSubscription: {
    message: 'Subscription is cancelled and stays usable until 2025-12-24T16:00:00.000Z',
    endsAt: AT + MONTH_MS,
    status: 'CANCELLING',
  },
  CreditGrant: { customerId: 'acme', creditsAdded: 1000, newBalance: 10_880 },
  CreditPacks: { currency: 'USD', currencies: ['BRL', 'USD'], packs: [PACK] },
  Credits: {
    customerId: 'acme',
    credits: 9880,
    creditLimit: 10_000,
    creditsUsedThisMonth: 120,
    lastResetAt: AT,
  },
  CreditTransactions: {
    transactions: [
      {
        transactionId: 'txn_2',
        customerId: 'acme',
        amount: -120,
        type: 'consumption',
        description: 'Webhooks of shop-orders',
        balanceAfter: 9880,
        createdAt: AT + 60_000,
      },
      {
        transactionId: 'txn_1',
        customerId: 'acme',
        amount: 10_000,
        type: 'grant',
        description: 'Credits of plan Basic',
        balanceAfter: 10_000,
        createdAt: AT,
      },
    ],
  },
  CurrentSubscription: { subscription: SUBSCRIPTION, plan: PLAN },
  Invoice: {
    invoiceId: 'in_1',
    customerId: 'acme',
    subscriptionId: 'sub_1',
    status: 'paid',
    amount: 900,
    paidAt: AT + 1000,
    createdAt: AT,
  },
  NotificationReceived: { received: true },
  PackCheckout: {
    checkoutUrl: 'https://payments.example/checkout/1',
    packId: 'pack-1k',
    credits: 1000,
  },
  Plan: PLAN,
  PlanCheckout: {
    checkoutUrl: 'https://payments.example/checkout/2',
    planId: 'basic',
    planName: 'Basic',
  },
}
