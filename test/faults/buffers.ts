/** The buffers of a fault run: whatever they are told is in the history, with the time at which it was known to hold. */
import type { Buffer as BufferResource } from '../../internal/domain/model.ts'
import type { Api, BufferFields } from '../support/api.ts'
import type { History } from './history.ts'
import { type BufferChange, termsOf } from './terms.ts'

export type BufferPatch = Parameters<Api['patchBuffer']>[1]

export interface BuffersOptions {
  readonly history: History
  /** As the owner of the customer; asked anew for each call. */
  readonly api: () => Api
  readonly projectId: string
  /** Of the destination, as the nodes reach it. */
  readonly deliverTo: () => string
}

export class Buffers {
  readonly #options: BuffersOptions
  /** As they were asked to be. */
  readonly #resources = new Map<string, BufferResource>()

  constructor(options: BuffersOptions) {
    this.#options = options
  }

  get ids(): string[] {
    return [...this.#resources.keys()]
  }

  /** Batches fast, tries 5 times, 100 to 400 ms apart, and signs, unless `fields` says otherwise. */
  async create(bufferId: string, fields: Partial<BufferFields> = {}): Promise<void> {
    const { api, projectId, deliverTo, history } = this.#options
    const askedAt = Date.now()
    const resource = await api().createBuffer(projectId, bufferId, {
      batch: { maxItems: 20, idleTimeoutMs: 150, maxWaitFromFirstMs: 1_000 },
      throughput: { maxAttempts: 5, backoff: { initialMs: 100, maxMs: 400 } },
      dlqPauseThreshold: 10,
      ...fields,
      delivery: { url: deliverTo(), signing: signedWith(`secret of ${bufferId}`), ...fields.delivery },
    })
    this.#resources.set(bufferId, resource)
    history.changes.push({ bufferId, terms: termsOf(resource), askedAt, answeredAt: Date.now() })
  }

  /** Rejects when nobody says that it is done; it may hold all the same. */
  async patch(bufferId: string, patch: BufferPatch): Promise<void> {
    const wanted = merged(this.#resources.get(bufferId)!, patch) as BufferResource
    const change: BufferChange = { bufferId, terms: termsOf(wanted), askedAt: Date.now(), answeredAt: null }
    this.#options.history.changes.push(change)
    this.#resources.set(bufferId, wanted)
    await this.#options.api().patchBuffer(bufferId, patch)
    change.answeredAt = Date.now()
  }

  /** Enables a buffer that is disabled, by its dead letters or by `patch`. Rejects when nobody says so. */
  async enable(bufferId: string): Promise<void> {
    const { enabled } = await this.#options.api().readBuffer(bufferId)
    if (!enabled) await this.patch(bufferId, { enabled: true })
  }
}

/** A signature with this secret in the header that is the default. */
export function signedWith(secret: string) {
  return { type: 'hmac-sha256' as const, secret, header: 'x-svc-signature' }
}

/** RFC 7396, but for `null`. */
function merged(target: unknown, patch: unknown): unknown {
  if (!isObject(target) || !isObject(patch)) return patch
  const members = Object.entries(patch).map(([name, value]) => [name, merged(target[name], value)])
  return { ...target, ...Object.fromEntries(members) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
