/**
 * What an end-to-end test stands on: a running service, a destination of the file's own, and buffers whose
 * batches arrive there under their own path.
 */
import { randomUUID } from 'node:crypto'
import { after, afterEach, before } from 'mocha'

import type { Buffer as BufferResource, DlqItem } from '../../internal/domain/model.ts'
import type { Accepted, Answer, Api, BufferFields, Payload } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { untilAllAnswer } from '../support/fronts.ts'
import type { Installation, LogEvent } from '../support/service.ts'
import { sharedInstallation } from '../support/shared-installation.ts'
import { type Sink, type SinkBehaviour, type SinkRequest, startSink } from '../support/sink.ts'

/** The body of a delivery (docs/reference/buffers.md, "Deliveries"). */
export interface DeliveryBatch {
  svc: {
    customerId: string
    projectId: string
    bufferId: string
    groupKey: string
    groupHash: string
    segment: number
  }
  window: { firstItemAt: number; lastActivityAt: number; itemsCount: number }
  // biome-ignore lint/suspicious/noExplicitAny: payloads are whatever a test sent.
  items: { messageId: string; receivedAt: number; payload: any }[]
}

export type ChannelFields = Partial<Omit<BufferFields, 'delivery'>> & {
  delivery?: Partial<BufferFields['delivery']>
}

/** Never due by itself within a test. */
export const NEVER_DUE = { idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 } as const
/** Due as soon as possible. */
export const SOON = { idleTimeoutMs: 100, maxWaitFromFirstMs: 600_000 } as const

/** A buffer together with the place where its batches arrive. */
export class Channel {
  readonly bufferId: string
  readonly projectId: string
  readonly api: Api
  readonly path: string
  readonly #sink: Sink
  readonly #installation: Installation

  constructor(installation: Installation, api: Api, sink: Sink, projectId: string, bufferId: string) {
    this.#installation = installation
    this.api = api
    this.#sink = sink
    this.projectId = projectId
    this.bufferId = bufferId
    this.path = `/${bufferId}`
  }

  /** Where its batches go, unless its configuration was changed. */
  get url(): string {
    return this.#sink.url(this.path)
  }

  /** Any answer. */
  ingest(payload: Payload, headers: Record<string, string> = {}): Promise<Answer> {
    return this.api.ingest(this.projectId, this.bufferId, payload, headers)
  }

  /** Rejects unless it is accepted. */
  async send(payload: Payload, headers: Record<string, string> = {}): Promise<Accepted> {
    const answer = await this.ingest(payload, headers)
    if (answer.status !== 202) throw new Error(`ingest answered ${answer.status}: ${answer.text}`)
    return answer.json()
  }

  /** One after the other, so that their order is known. */
  async sendAll(payloads: readonly Payload[]): Promise<Accepted[]> {
    const answers: Accepted[] = []
    for (const payload of payloads) answers.push(await this.send(payload))
    return answers
  }

  /** What the destination does with this buffer's batches. */
  answer(behaviour: SinkBehaviour): void {
    this.#sink.on(this.path, behaviour)
  }

  requests(): SinkRequest[] {
    return this.#sink.requests(this.path)
  }

  batches(): DeliveryBatch[] {
    return this.requests().map(batchOf)
  }

  /** Resolves with all requests of this buffer once there are `count`. */
  async untilRequests(count: number, timeoutMs = 10_000): Promise<SinkRequest[]> {
    try {
      await this.#sink.waitForCount(count, this.path, timeoutMs)
    } catch (error) {
      throw new Error(`${this.bufferId} got ${this.requests().length} of ${count} requests`, { cause: error })
    }
    return this.requests()
  }

  async untilBatches(count: number, timeoutMs?: number): Promise<DeliveryBatch[]> {
    return (await this.untilRequests(count, timeoutMs)).map(batchOf)
  }

  /** Resolves with all batches once `items` items came in them. */
  async untilItems(items: number, timeoutMs = 10_000): Promise<DeliveryBatch[]> {
    await this.#sink.waitFor(() => countItems(this.batches()) >= items, timeoutMs)
    return this.batches()
  }

  untilDead(count = 1, timeoutMs = 10_000): Promise<DlqItem[]> {
    return eventually(
      async () => {
        const items = await this.api.deadLetters(this.bufferId)
        return items.length >= count && items
      },
      { timeoutMs, everyMs: 25 },
    )
  }

  /** Log events of this buffer once there are `count`: flush, delivery, dead, discarded. */
  untilEvents(msg: string, count: number, timeoutMs = 15_000): Promise<LogEvent[]> {
    return eventually(
      () => {
        const events = this.events(msg)
        return events.length >= count && events
      },
      { timeoutMs },
    )
  }

  events(msg: string): LogEvent[] {
    return this.#installation.events(msg, { bufferId: this.bufferId })
  }

  read(): Promise<BufferResource> {
    return this.api.readBuffer(this.bufferId)
  }

  /** Whether it takes webhooks is known to every process that does. */
  async patch(patch: Parameters<Api['patchBuffer']>[1]): Promise<BufferResource> {
    const changed = await this.api.patchBuffer(this.bufferId, patch)
    if (patch.enabled !== undefined)
      await this.#untilAllAnswer(({ text }) => text.includes('Buffer is disabled') !== changed.enabled)
    return changed
  }

  async remove(): Promise<void> {
    await this.api.deleteBuffer(this.bufferId)
    await this.#untilAllAnswer(({ status }) => status === 404)
  }

  #untilAllAnswer(wanted: Parameters<typeof untilAllAnswer>[1]): Promise<void> {
    const { url } = this.#installation.service
    return untilAllAnswer(`${url}/v1/ingest/${this.projectId}/${this.bufferId}`, wanted)
  }
}

export function batchOf(request: SinkRequest): DeliveryBatch {
  return request.json() as DeliveryBatch
}

export function countItems(batches: readonly DeliveryBatch[]): number {
  return batches.reduce((sum, batch) => sum + batch.items.length, 0)
}

/** All payloads in the order in which they were delivered. */
export function payloadsOf(batches: readonly DeliveryBatch[]) {
  return batches.flatMap((batch) => batch.items.map((item) => item.payload))
}

export interface Harness {
  readonly installation: Installation
  readonly api: Api
  readonly sink: Sink
  /** A buffer of a new id, delivered to the harness's sink; its project is new for another customer than the first. */
  channel(fields?: ChannelFields, options?: { api?: Api; projectId?: string; sink?: Sink }): Promise<Channel>
}

export interface HarnessOptions {
  /** Default: the run's shared service. A given one is stopped with the file. */
  installation?: () => Promise<Installation>
}

/** For a `describe`: sets the harness before its tests and takes it down after them; a failed test shows the log's end. */
export function harness(options: HarnessOptions = {}): Harness {
  let now: { installation: Installation; sink: Sink; projectId: string }
  const sinks = new Set<Sink>()
  const own = options.installation
  before(async function () {
    this.timeout(120_000)
    const installation = await (own ?? sharedInstallation)()
    const sink = await startSink()
    sinks.add(sink)
    now = { installation, sink, projectId: await installation.api().createProject() }
  })
  afterEach(function () {
    if (this.currentTest?.state === 'failed') showLog(now?.installation)
  })
  after(async () => {
    for (const sink of sinks) await sink.close()
    if (own) await now?.installation.stop()
  })
  return {
    get installation() {
      return now.installation
    },
    get api() {
      return now.installation.api()
    },
    get sink() {
      return now.sink
    },
    async channel(
      fields = {},
      { api = now.installation.api(), projectId = now.projectId, sink = now.sink } = {},
    ) {
      const bufferId = `buffer-${randomUUID()}`
      const delivery = { url: sink.url(`/${bufferId}`), ...fields.delivery }
      await api.createBuffer(projectId, bufferId, { ...fields, delivery })
      return new Channel(now.installation, api, sink, projectId, bufferId)
    },
  }
}

/** Warnings and errors first of all: what is at debug would hide them. */
function showLog(installation: Installation | undefined): void {
  const telling = installation?.events().filter(({ level }) => level !== 'debug' && level !== 'info') ?? []
  for (const event of telling.slice(-15)) process.stderr.write(`      ${JSON.stringify(event)}\n`)
}
