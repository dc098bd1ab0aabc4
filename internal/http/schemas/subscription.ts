import { planSchema } from './plans.ts'
import { closed, flag, instant, oneOf, orNull, text } from './shape.ts'

/** docs/reference/api.md, "Subscriptions". */

const statuses = ['PENDING', 'ACTIVE', 'CANCELLING', 'CANCELLED', 'PAST_DUE']

const subscriptionSchema = closed('Subscription', 'A subscription.', {
  subscriptionId: text('The subscription.', { minLength: 1 }),
  customerId: text('Its customer.', { minLength: 1 }),
  planId: text('Its plan.', { minLength: 1 }),
  status: oneOf('CANCELLING stays usable until currentPeriodEnd.', statuses, 'SubscriptionStatus'),
  currentPeriodStart: instant('When the present period began'),
  currentPeriodEnd: instant('When it ends'),
  autoRenew: flag('Whether another period follows.'),
})

export const currentSubscriptionSchema = closed(
  'CurrentSubscription',
  'The subscription of a customer with its plan; both are null when there was never one.',
  { subscription: orNull(subscriptionSchema), plan: orNull(planSchema) },
)

export const cancelledSubscriptionSchema = closed(
  'CancelledSubscription',
  'A subscription that will not renew.',
  {
    message: text('What was done, in words.', { minLength: 1 }),
    endsAt: instant('Until when it stays usable'),
    status: oneOf('State reached.', ['CANCELLING']),
  },
)

export const notificationReceivedSchema = closed(
  'NotificationReceived',
  'A notification that need not be told again.',
  {
    received: flag('Always true.'),
  },
)

export const billingPortalSchema = closed('BillingPortal', 'Where an account manages what it has bought.', {
  portalUrl: text('Page of the payment provider.', { format: 'uri' }),
})
