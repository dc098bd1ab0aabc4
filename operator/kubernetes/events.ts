/** Tells whoever looks at a resource what happened to it: Events of events.k8s.io/v1. Never in the way of a pass. */
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'
import { Semaphore } from '../../internal/runtime/semaphore.ts'
import { WORKERS } from '../controller/turns.ts'
import { API_VERSION, type BufferResource, GROUP, KIND } from '../resource.ts'
import { hasStatus } from './api-error.ts'
import type { ApiServer } from './api-server.ts'
import { EventSeries, type EventWrite } from './event-series.ts'
import { microTime } from './lease.ts'

/** Bytes of a note that the API server takes. */
const NOTE_BYTES = 1_024
/** Characters of a resource's name in the name of its Event, which has 253 at most. */
const NAME_CHARACTERS = 200
/**
 * Events that wait to be written; further ones are dropped: they must not fill the memory while the API server is away. A
 * namespace has a further one while there is more room than it takes, so none takes that of the others.
 */
const WAITING = 5_000

const ACTION = 'Reconcile'

export interface EventsLog {
  warn(fields: Record<string, unknown>, message: string): void
}

export interface EventRecorderOptions {
  api: ApiServer
  /** Name of this process. */
  instance: string
  clock: Clock
  randomness: Pick<Randomness, 'bytes'>
  log: EventsLog
}

interface Written {
  readonly resource: BufferResource
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly note: string
}

export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #series: EventSeries
  readonly #stop = new AbortController()
  /** As many as passes run at once: so the writes keep up with what the passes record. */
  readonly #writers = new Semaphore(WORKERS)
  /** The last write about each resource that has some under way, by uid. They keep their order: a count follows its Event. */
  readonly #last = new Map<string, Promise<void>>()
  /** Events that wait, by namespace. */
  readonly #waiting = new Map<string, number>()

  constructor(options: EventRecorderOptions) {
    this.#options = options
    this.#series = new EventSeries(options.clock)
  }

  /** `reason`: CamelCase. `note`: for people, cut to 1,024 bytes; never a secret. */
  record(resource: BufferResource, type: 'Normal' | 'Warning', reason: string, note: string): void {
    const { uid, name, namespace } = resource.metadata
    if (!this.#hasRoom(namespace)) return
    const text = `${type} ${reason} ${note}`
    const verdict = this.#series.judge(uid, text, () => this.#nameFor(name))
    if (verdict.write === 'nothing') return
    this.#waiting.set(namespace, (this.#waiting.get(namespace) ?? 0) + 1)
    const before = this.#last.get(uid) ?? Promise.resolve()
    const written = before
      .then(() => this.#inTurn(() => this.#write({ resource, type, reason, note }, verdict)))
      .catch((error: unknown) => {
        this.#series.forget(uid, text)
        this.#tell(error, resource)
      })
      .finally(() => {
        this.#leave(namespace)
        if (this.#last.get(uid) === written) this.#last.delete(uid)
      })
    this.#last.set(uid, written)
  }

  async #inTurn(write: () => Promise<void>): Promise<void> {
    await this.#writers.acquire()
    try {
      await write()
    } finally {
      this.#writers.release()
    }
  }

  /** What was recorded is written, for as long as `ms` milliseconds; what is not by then is dropped. */
  async close(ms: number): Promise<void> {
    const cancel = this.#options.clock.after(ms, () => this.#stop.abort())
    await Promise.all(this.#last.values())
    cancel()
  }

  #hasRoom(namespace: string): boolean {
    let waiting = 0
    for (const events of this.#waiting.values()) waiting += events
    return (this.#waiting.get(namespace) ?? 0) < WAITING - waiting
  }

  #leave(namespace: string): void {
    const left = this.#waiting.get(namespace)! - 1
    if (left > 0) this.#waiting.set(namespace, left)
    else this.#waiting.delete(namespace)
  }

  async #write(event: Written, verdict: Exclude<EventWrite, { write: 'nothing' }>): Promise<void> {
    const { signal } = this.#stop
    if (signal.aborted) return
    const path = `/apis/events.k8s.io/v1/namespaces/${event.resource.metadata.namespace}/events`
    const { api, clock } = this.#options
    const time = microTime(clock.now())
    if (verdict.write === 'first') {
      await api.request('POST', path, { body: this.#newEvent(event, verdict.name, time), signal })
      return
    }
    await api.request('PATCH', `${path}/${verdict.name}`, {
      contentType: 'application/merge-patch+json',
      body: { series: { count: verdict.count, lastObservedTime: time } },
      signal,
    })
  }

  #newEvent({ resource, type, reason, note }: Written, name: string, eventTime: string) {
    const { namespace, uid, resourceVersion, name: resourceName } = resource.metadata
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name, namespace },
      eventTime,
      reportingController: `${GROUP}/operator`,
      reportingInstance: this.#options.instance.slice(0, 128),
      action: ACTION,
      reason,
      type,
      note: cut(note),
      regarding: { apiVersion: API_VERSION, kind: KIND, namespace, name: resourceName, uid, resourceVersion },
    }
  }

  #nameFor(resourceName: string): string {
    const suffix = Buffer.from(this.#options.randomness.bytes(8)).toString('hex')
    // A cut may leave a dot or a hyphen at its end, which must not stand before a dot.
    return `${resourceName.slice(0, NAME_CHARACTERS).replace(/[.-]+$/, '')}.${suffix}`
  }

  #tell(error: unknown, { metadata: { namespace, name } }: BufferResource): void {
    // A namespace that is being deleted takes no Events; the count of one that is gone by age is of no use.
    if (this.#stop.signal.aborted || hasStatus(error, 404)) return
    this.#options.log.warn({ err: error, resource: `${namespace}/${name}` }, 'an event could not be written')
  }
}

/** Whole characters only. */
function cut(note: string): string {
  const bytes = Buffer.from(note)
  if (bytes.length <= NOTE_BYTES) return note
  return new TextDecoder().decode(bytes.subarray(0, NOTE_BYTES - 3), { stream: true })
}
