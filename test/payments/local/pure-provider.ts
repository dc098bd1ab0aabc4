/** The local payment provider without anything around it: its document, and changes of that. */
import type { Reading } from '../../../internal/billing/readings.ts'
import { chooseOutcome, type Item, openCheckout } from '../../../internal/payments/local/checkouts.ts'
import { changed, type Draft } from '../../../internal/payments/local/draft.ts'
import { told, untold } from '../../../internal/payments/local/events.ts'
import type { CheckoutOutcome } from '../../../internal/payments/local/ports.ts'
import { readingOf } from '../../../internal/payments/local/readings.ts'
import {
  emptyState,
  type LocalPayment,
  type LocalState,
  type LocalSubscription,
} from '../../../internal/payments/local/state.ts'
import { advance, catchUp } from '../../../internal/payments/local/time.ts'

export const starter: Item = { kind: 'plan', itemId: 'starter', priceInCents: 4900, currency: 'BRL' }
export const pack: Item = { kind: 'pack', itemId: 'credits-10k', priceInCents: 980, currency: 'BRL' }
export const ada = { customerId: 'ada', providerCustomerId: 'cus_ada' }

export class PureProvider {
  state: LocalState = emptyState('secret')
  /** Real time. */
  now: number
  #ids = 0

  constructor(now = Date.UTC(2026, 2, 10, 12)) {
    this.now = now
  }

  run<T>(work: (draft: Draft) => T): T {
    const newId = (prefix: string) => `${prefix}_${++this.#ids}`
    const { document, result } = changed(this.state, { now: this.now, newId }, (draft) => {
      catchUp(draft)
      return work(draft)
    })
    this.state = document
    return result
  }

  open(item: Item, customer = ada): string {
    return this.run((draft) => openCheckout(draft, customer, item).checkoutId)
  }

  choose(checkoutId: string, outcome: CheckoutOutcome, amountInCents?: number): void {
    const choice = { outcome, ...(amountInCents !== undefined && { amountInCents }) }
    this.run((draft) => chooseOutcome(draft, checkoutId, choice))
  }

  /** Answers the checkout. */
  buy(item: Item, outcome: CheckoutOutcome = 'pays', amountInCents?: number): string {
    const checkoutId = this.open(item)
    this.choose(checkoutId, outcome, amountInCents)
    return checkoutId
  }

  advance(days: number): void {
    this.run((draft) => advance(draft, days))
  }

  /** All events, one after the other; answers what each named. */
  tell(): string[] {
    const named: string[] = []
    for (let [event] = untold(this.state); event !== undefined; [event] = untold(this.state)) {
      named.push(`${event.kind} ${event.objectId}`)
      const { eventId } = event
      this.run((draft) => told(draft, eventId))
    }
    return named
  }

  /** The last one. */
  get subscription(): LocalSubscription {
    return this.state.subscriptions.at(-1)!
  }

  /** The last one. */
  get payment(): LocalPayment {
    return this.state.payments.at(-1)!
  }

  /** All events that there are. */
  tellAtOnce(): void {
    this.run((draft) => {
      for (const { eventId } of untold(draft.state)) told(draft, eventId)
    })
  }

  read<Kind extends Reading['kind']>(kind: Kind, id: string): Extract<Reading, { kind: Kind }> {
    const reading = readingOf(this.state, { kind, id })
    if (reading?.kind !== kind) throw new Error(`there is no ${kind} ${id}`)
    return reading as Extract<Reading, { kind: Kind }>
  }

  /** The last subscription. */
  get reading() {
    return this.read('subscription', this.subscription.subscriptionId)
  }

  /** Of the last subscription, the oldest first. */
  get invoices() {
    const { subscriptionId } = this.subscription
    return this.state.payments
      .filter((each) => each.subscriptionId === subscriptionId)
      .map(({ paymentId }) => this.read('invoice', paymentId))
  }
}

/** `code` of the refusal, or its text without one; undefined: nothing was refused. */
export function refusalOf(act: () => unknown): string | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    return code ?? message
  }
}
