/** Events of the double: kept as Stripe keeps them, signed by its package's own helper, and told to an endpoint. */

import Stripe from 'stripe'
import type { Notification } from '../../../internal/billing/ports.ts'
import type { Store } from './store.ts'

/** A telling that is refused is tried so often, with a pause in between; what is refused then stays to be told. */
const TRIES = 5
const PAUSE_MS = 50

export interface Signed extends Notification {
  readonly body: Buffer
  readonly signature: string
}

export class Told {
  /** Where events are posted to; undefined: they are kept only. */
  deliverTo: string | undefined
  /** Events get lost on the way: they are kept only. */
  losing = false
  /** When signatures are made, Unix ms. */
  signedAt: () => number = Date.now
  /** Answers of the endpoint, in order. */
  readonly answers: { eventId: string; type: string; status: number }[] = []
  readonly #store: Store
  readonly #secret: string
  readonly #show: (object: object) => object
  readonly #stripe = new Stripe('sk_test_signs')
  #queue: Promise<void> = Promise.resolve()

  /** `show`: an object as it stands in events. */
  constructor(store: Store, secret: string, show: (object: object) => object) {
    this.#store = store
    this.#secret = secret
    this.#show = show
  }

  /** `object` as it stands now. */
  tell(type: string, object: object): Stripe.Event {
    const event = this.#store.add('events', {
      id: this.#store.newId('events'),
      object: 'event',
      api_version: Stripe.API_VERSION,
      created: this.#store.now(),
      data: { object: this.#show(object) },
      livemode: false,
      pending_webhooks: 1,
      request: null,
      type,
    } as unknown as Stripe.Event)
    if (!this.losing) this.post(event.id)
    return event
  }

  /** Behind what is being told. */
  post(eventId: string): void {
    if (this.deliverTo !== undefined) this.#queue = this.#queue.then(() => this.#deliver(eventId))
  }

  /** When all of them were taken, or refused for good. */
  async settled(): Promise<void> {
    let seen: Promise<void>
    do {
      seen = this.#queue
      await seen
    } while (seen !== this.#queue)
  }

  signed(event: unknown, { secret = this.#secret, at = this.signedAt() } = {}): Signed {
    const payload = typeof event === 'string' ? event : JSON.stringify(event)
    const timestamp = Math.floor(at / 1_000)
    const signature = this.#stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
    return {
      body: Buffer.from(payload),
      signature,
      header: (name) => (name === 'stripe-signature' ? signature : undefined),
    }
  }

  async #deliver(eventId: string): Promise<void> {
    const event = this.#store.get('events', eventId)
    for (let tried = 0; tried < TRIES; tried++) {
      const status = await this.#send(event)
      this.answers.push({ eventId, type: event.type, status })
      if (status >= 200 && status < 300) return
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }

  /** 0: no answer. */
  async #send(event: Stripe.Event): Promise<number> {
    const { body, signature } = this.signed(event)
    const headers = { 'content-type': 'application/json', 'stripe-signature': signature, connection: 'close' }
    try {
      const response = await fetch(this.deliverTo!, { method: 'POST', headers, body: new Uint8Array(body) })
      await response.arrayBuffer()
      return response.status
    } catch {
      return 0
    }
  }
}
