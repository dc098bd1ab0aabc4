/**
 * The destination of a fault run: it records every attempt and its own answer, and answers by the first word
 * of the group key.
 *
 *   ok       200
 *   slow     200 after up to 300 ms
 *   patient  200 after 2 to 6 s
 *   flaky    500 to the first two attempts of a batch
 *   reject   400
 *   failing  500
 */
import { setTimeout as delay } from 'node:timers/promises'

import { type Sink, type SinkRequest, startSink } from '../support/sink.ts'
import { readBatch } from './batch-body.ts'
import { readHeaders } from './delivery-headers.ts'
import type { Delivery, Fault, History } from './history.ts'

export class Destination {
  readonly #sink: Sink
  readonly #history: History
  readonly #random: () => number
  readonly #isListening: () => boolean
  #held: { groupKey: string; reached: () => void } | null = null

  private constructor(sink: Sink, history: History, random: () => number, isListening: () => boolean) {
    this.#sink = sink
    this.#history = history
    this.#random = random
    this.#isListening = isListening
    sink.otherwise((request) => this.#answer(request))
  }

  /** `isListening`: the service runs, so that somebody reads the answers. */
  static async open(
    history: History,
    random: () => number,
    isListening: () => boolean,
  ): Promise<Destination> {
    return new Destination(await startSink(), history, random, isListening)
  }

  get url(): string {
    return this.#sink.url('/')
  }

  /** The next attempt of this group is never answered; resolves when it has arrived. */
  holdNext(groupKey: string): Promise<void> {
    return new Promise((reached) => {
      this.#held = { groupKey, reached }
    })
  }

  close(): Promise<void> {
    return this.#sink.close()
  }

  async #answer(request: SinkRequest) {
    // The bodies are in the history as hashes; together they would be the memory of the run.
    this.#sink.clear()
    const batch = this.#read(request)
    const status = this.#statusFor(batch.key, batch.groupKey)
    const index = this.#history.deliveries.push(batch) - 1
    request.onClosed((closedAt) => this.#amend(index, { closedAt }))
    if (this.#held?.groupKey === batch.groupKey) {
      this.#held.reached()
      this.#held = null
      return { fault: 'hang' } as const
    }
    if (batch.groupKey.startsWith('slow')) await delay(this.#random() * 300)
    if (batch.groupKey.startsWith('patient')) await delay(2_000 + this.#random() * 4_000)
    this.#answered(index, status)
    return { status }
  }

  /** Until an answer goes out there was none. */
  #read(request: SinkRequest): Delivery {
    const batch = readBatch('', request.body)
    const changes = this.#history.changes.filter(({ bufferId }) => bufferId === batch.bufferId)
    const headers = readHeaders(
      request,
      changes.map(({ terms }) => terms),
    )
    return { ...batch, ...headers, at: request.at, status: 0, answeredAt: 0, closedAt: null }
  }

  #answered(index: number, status: number): void {
    const delivery = this.#history.deliveries[index]!
    const heard = this.#isListening() && !this.#history.faults.some((fault) => cutsOff(fault, delivery.at))
    this.#amend(index, { status: heard ? status : 0, answeredAt: Date.now() })
  }

  #amend(index: number, more: Partial<Delivery>): void {
    this.#history.deliveries[index] = { ...this.#history.deliveries[index]!, ...more }
  }

  #statusFor(key: string, groupKey: string): number {
    const [kind] = groupKey.split('-')
    if (kind === 'reject') return 400
    if (kind === 'failing') return 500
    if (kind !== 'flaky') return 200
    return this.#history.deliveries.filter((each) => each.key === key).length < 2 ? 500 : 200
  }
}

/** The service died after it had sent this. */
function cutsOff({ kind, from }: Fault, sentAt: number): boolean {
  return kind === 'kill' && from >= sentAt
}
