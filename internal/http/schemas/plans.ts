import { currencies } from '../../domain/currency.ts'
import { closed, flag, integer, oneOf, text } from './shape.ts'

/** docs/reference/api.md, "Plans". */

const prices = {
  ...closed(
    'Prices',
    'Monthly price by currency, cents; a currency without a price is absent.',
    Object.fromEntries(
      currencies.map((currency) => [currency, integer(`Cents of ${currency}.`, { minimum: 1 })]),
    ),
    currencies,
  ),
  minProperties: 1,
}

export const planSchema = closed('Plan', 'A plan.', {
  planId: text('The plan.', { minLength: 1 }),
  name: text('Name of the plan.', { minLength: 1 }),
  priceInCents: integer('Legacy monthly price in `currency`, cents; use `prices`.', { minimum: 1 }),
  currency: oneOf('Currency of `priceInCents`.', currencies, 'Currency'),
  prices,
  creditsPerCycle: integer('Credits granted a cycle.', { minimum: 1 }),
  isActive: flag('Whether it can be subscribed to.'),
})

export const planCheckoutSchema = closed('PlanCheckout', 'Where a plan can be subscribed to.', {
  checkoutUrl: text('Page of the payment provider.', { format: 'uri' }),
  planId: text('The plan.', { minLength: 1 }),
  planName: text('Name of the plan.', { minLength: 1 }),
})
