/** A payment provider that writes down what it is asked, and agrees unless it is told not to. */
import type { Cancellation, Checkout, Notification, PaymentProvider } from '../../internal/billing/ports.ts'
import { BadNotificationError } from '../../internal/billing/readings.ts'

type Reference = Parameters<PaymentProvider['read']>[0]
type Answer = Awaited<ReturnType<PaymentProvider['read']>>

export type Asked =
  | ({ call: 'checkoutUrl' } & Checkout)
  | { call: 'changes'; since: number }
  | { call: 'cancelAndRefund'; subscriptionId: string }
  | ({ call: 'cancelAtPeriodEnd' | 'cancelNow' } & Cancellation)

export class RecordingProvider implements PaymentProvider {
  readonly name = 'recording'
  readonly sellsWithoutOffer = false
  readonly asked: Asked[] = []
  /** What it has, by id. */
  readonly objects = new Map<string, Answer>()
  /** Offers that it does not have. */
  readonly unknownOffers = new Set<string>()
  /** It fails from here on. */
  failing = false
  /** Runs between a reading and its answer. */
  beforeAnswer: (id: string) => Promise<unknown> = async () => {}
  /** Runs after its yes to a cancellation and before the answer. */
  afterYes: () => Promise<unknown> = async () => {}

  async checkoutUrl(checkout: Checkout): Promise<string | undefined> {
    this.#answer({ call: 'checkoutUrl', ...checkout })
    if (this.unknownOffers.has(checkout.offerId!)) return undefined
    return `https://pay.example/${checkout.offerId}?customer=${checkout.customerId}`
  }

  async portalUrl(customerId: string): Promise<string | undefined> {
    if (this.failing) throw new Error('the provider says 500')
    return this.unknownOffers.has(customerId) ? undefined : `https://pay.example/portal/${customerId}`
  }

  /** Reasons of refunds that it refuses. */
  refused: string[] = []

  async cancelAndRefund(subscriptionId: string): Promise<string[]> {
    this.#answer({ call: 'cancelAndRefund', subscriptionId })
    const reading = this.objects.get(subscriptionId)
    if (reading?.kind === 'subscription')
      this.objects.set(subscriptionId, { ...reading, status: 'CANCELLED' })
    return this.refused
  }

  async read({ id }: Reference): Promise<Answer> {
    if (this.failing) throw new Error('the provider says 500')
    const answer = this.objects.get(id)
    await this.beforeAnswer(id)
    return answer
  }

  async *changes(since: number): AsyncGenerator<Reference> {
    this.#answer({ call: 'changes', since })
    for (const [id, reading] of this.objects) if (reading) yield { kind: reading.kind, id }
  }

  /** The body is the references as JSON; it must be signed with `good`. */
  async notification({ body, header }: Notification): Promise<Reference[]> {
    if (header('recording-signature') !== 'good') throw new BadNotificationError('the signature is wrong')
    return JSON.parse(Buffer.from(body).toString())
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
