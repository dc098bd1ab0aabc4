/** A payment provider that writes down what it is asked, and agrees unless it is told not to. */
import type { Cancellation, Checkout, PaymentProvider } from '../../internal/billing/ports.ts'

export type Asked =
  | ({ call: 'checkoutUrl' } & Checkout)
  | ({ call: 'cancelAtPeriodEnd' | 'cancelNow' } & Cancellation)

export class RecordingProvider implements PaymentProvider {
  readonly asked: Asked[] = []
  /** Offers that it does not have. */
  readonly unknownOffers = new Set<string>()
  /** It fails from here on. */
  failing = false
  /** Runs after its yes to a cancellation and before the answer. */
  afterYes: () => Promise<unknown> = async () => {}

  async checkoutUrl(checkout: Checkout): Promise<string | undefined> {
    this.#answer({ call: 'checkoutUrl', ...checkout })
    if (this.unknownOffers.has(checkout.offerId)) return undefined
    return `https://pay.example/${checkout.offerId}?customer=${checkout.customerId}`
  }

  async cancelAtPeriodEnd(cancellation: Cancellation): Promise<void> {
    this.#answer({ call: 'cancelAtPeriodEnd', ...cancellation })
    await this.afterYes()
  }

  async cancelNow(cancellation: Cancellation): Promise<void> {
    this.#answer({ call: 'cancelNow', ...cancellation })
    await this.afterYes()
  }

  #answer(asked: Asked): void {
    this.asked.push(asked)
    if (this.failing) throw new Error('the provider says 500')
  }
}
