import { currencies } from '../../domain/currency.ts'
import { closed, count, flag, instant, integer, list, number, oneOf, orNull, text } from './shape.ts'

/** docs/reference/api.md, "Credits". */

export const creditsSchema = closed('Credits', 'The balance of a customer.', {
  customerId: text('The customer.', { minLength: 1 }),
  credits: integer('Current balance, credits.'),
  creditLimit: count('Credits granted a cycle by the plan, else the initial grant.'),
  creditsUsedThisMonth: count('Credits consumed since the month began (UTC).'),
  lastResetAt: instant('When creditsUsedThisMonth was last set to 0'),
})

export const creditGrantSchema = closed('CreditGrant', 'Credits that were granted.', {
  customerId: text('The customer.', { minLength: 1 }),
  creditsAdded: integer('Credits granted.', { minimum: 1, maximum: 100_000 }),
  newBalance: integer('Balance afterwards, credits.'),
})

const transactionSchema = closed(
  'CreditTransaction',
  'What moved the balance; consumption is one entry a buffer and minute.',
  {
    transactionId: text('The transaction.', { minLength: 1 }),
    customerId: text('The customer.', { minLength: 1 }),
    amount: integer('Credits: positive for grants, purchases and refunds, negative for consumption.'),
    type: oneOf('What it was for.', ['grant', 'purchase', 'consumption', 'refund'], 'CreditTransactionType'),
    description: text('What it was for, in words.', { minLength: 1 }),
    balanceAfter: integer('Balance afterwards: that of the next older entry plus this amount.'),
    createdAt: instant('When it was booked'),
  },
)

export const creditTransactionsSchema = closed('CreditTransactions', 'What moved the balance.', {
  transactions: list('Newest first.', transactionSchema),
})

const currencySchema = oneOf('Currency of a price.', currencies, 'Currency')

const tierSchema = closed('PackTier', 'The plan at whose rate a credit the pack is sold.', {
  planId: text('The plan.', { minLength: 1 }),
  name: text('Name of the plan.', { minLength: 1 }),
  priceInCents: integer('Monthly price of the plan in the answered currency, cents.', { minimum: 1 }),
  creditsPerCycle: integer('Credits of the plan a cycle.', { minimum: 1 }),
})

const betterValueSchema = closed('BetterPack', 'A bigger pack that costs the same or less.', {
  packId: text('The pack.', { minLength: 1 }),
  credits: integer('Credits that it holds.', { minimum: 1 }),
  priceInCents: integer('Its price, cents.', { minimum: 1 }),
})

const creditPackSchema = closed('CreditPack', 'Credits to buy at once.', {
  packId: text('The pack.', { minLength: 1 }),
  credits: integer('Credits that it holds.', { minimum: 1 }),
  priceInCents: integer('Price, cents, rounded half up.', { minimum: 1 }),
  currency: currencySchema,
  pricePer1kCents: number('Price of 1,000 credits, cents, may be fractional.', { minimum: 0 }),
  tier: tierSchema,
  available: flag('Whether the payment provider has an offer for it.'),
  betterValue: orNull(betterValueSchema),
})

export const creditPacksSchema = closed('CreditPacks', 'Credit packs on sale.', {
  currency: currencySchema,
  currencies: list('Currencies that the plans, and so the packs, have prices in.', currencySchema),
  packs: list('Smallest first.', creditPackSchema),
})

export const packCheckoutSchema = closed('PackCheckout', 'Where a credit pack can be bought.', {
  checkoutUrl: text('Page of the payment provider.', { format: 'uri' }),
  packId: text('The pack.', { minLength: 1 }),
  credits: integer('Credits that it holds.', { minimum: 1 }),
})
