/** Manual retries as a suite makes them: a real Postgres, a real client, and a destination anew for each test. */
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, beforeEach } from 'mocha'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import { createDeadLetterQueue, type DeadLetterQueue } from '../../internal/dlq/dead-letters.ts'
import type { DeadLetterStore, RetryEvent, RetryStore } from '../../internal/dlq/ports.ts'
import { createDeadLetterRetry, type RetryReport } from '../../internal/dlq/retry.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import type { DlqItem } from '../../internal/domain/model.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { createRetryStore } from '../../internal/postgres/dlq-retries.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import type { DeadBatch } from '../../internal/shard/ports.ts'
import { newClient } from '../delivery/fixture.ts'
import { type AccountsNode, accountsNode, bufferBody, principal } from '../support/accounts.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, type SinkAnswer, startSink } from '../support/sink.ts'

export const acme = principal('acme')

export class Retries {
  readonly #told: RetryEvent[] = []
  node!: AccountsNode
  sink!: Sink
  client!: DeliveryClient
  /** Of `acme`, in its project `p`, new in each test; it delivers to `/first` of the sink. */
  bufferId!: string

  async open(): Promise<void> {
    this.node = await accountsNode()
    for (const customerId of ['acme', 'other']) await this.node.customers.ensure(customerId)
    for (const projectId of ['p', 'q']) await this.node.projects.create(acme, { projectId, name: projectId })
  }

  async begin(): Promise<void> {
    this.sink = await startSink()
    this.client = newClient()
    this.bufferId = `buffer-${randomUUID()}`
    await this.createBuffer()
  }

  async end(): Promise<void> {
    await this.client.close(0)
    await this.sink.close()
  }

  async createBuffer(): Promise<void> {
    const delivery = { url: this.sink.url('/first') }
    await this.node.buffers.create(acme, bufferBody(this.bufferId, 'p', { delivery }))
  }

  async writeDeadLetter(given: Partial<DeadBatch> = {}): Promise<DeadBatch> {
    const { uid, buffer } = await this.node.buffers.record(acme, this.bufferId)
    const batch = deadBatch({ uid, ...buffer }, given)
    const letters = createDeadLetters(this.node.db)
    await letters.upload({ shard: 1, epoch: 1 }, batch)
    await letters.write({ shard: 1, epoch: 1 }, batch)
    return batch
  }

  queue(): DeadLetterQueue {
    return createDeadLetterQueue({ store: createDeadLetterStore(this.node.db) })
  }

  read(dlqId: string): Promise<DlqItem> {
    return this.queue().read(acme, dlqId)
  }

  locks(): RetryStore {
    return createRetryStore(this.node.db, this.node.box)
  }

  /** The attempts of a dead letter, as they were told. */
  toldOf(dlqId: string): RetryEvent[] {
    return this.#told.filter((event) => event.dlqId === dlqId)
  }

  async expireLock(dlqId: string): Promise<void> {
    await this.node.db`
      UPDATE dlq_items SET retry_until = clock_timestamp() - interval '1 ms' WHERE dlq_id = ${dlqId}`
  }

  retry(
    dlqId: string,
    who: Principal = acme,
    body: { customerId?: string } = {},
    given: { clock?: Clock; retries?: RetryStore; store?: DeadLetterStore } = {},
  ): Promise<RetryReport> {
    const { clock = this.node.clock, retries = this.locks() } = given
    const { store = createDeadLetterStore(this.node.db) } = given
    const telemetry = { retry: (event: RetryEvent) => void this.#told.push(event) }
    const options = { store, retries, deliveries: this.client, clock, telemetry }
    return createDeadLetterRetry(options).retry(who, dlqId, body)
  }

  /** Answers are given when they are asked for, one a request. */
  holding(): { arrived(count: number): Promise<unknown>; answer(answer: SinkAnswer): void } {
    const held: ((answer: SinkAnswer) => void)[] = []
    let arrivals = 0
    this.sink.otherwise(() => {
      arrivals++
      return new Promise((resolve) => held.push(resolve))
    })
    return {
      arrived: (count) => eventually(() => arrivals >= count),
      answer: (answer) => held.shift()!(answer),
    }
  }
}

/** Status and body of the refusal that a retry ends with. */
export async function refused(work: Promise<unknown>): Promise<Record<string, unknown> & { status: number }> {
  const error = await work.then(
    () => new Error('it was not refused'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof ServiceError)) throw error
  return { status: error.status, ...error.body }
}

/** To be called within `describe`. */
export function retriesOfEachTest(): Retries {
  const retries = new Retries()
  before(() => retries.open())
  after(() => retries.node.close())
  beforeEach(() => retries.begin())
  afterEach(() => retries.end())
  return retries
}
