/** Many Buffers at once, when each became ready, and Buffers that look as if an operator had settled them long ago. */
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import type { ApiServer } from '../../operator/kubernetes/api-server.ts'
import { Reflector } from '../../operator/kubernetes/reflector.ts'
import {
  API_VERSION,
  type BufferResource,
  FINALIZER,
  GROUP,
  PLURAL,
  VERSION,
} from '../../operator/resource.ts'
import { eventually } from '../../test/support/eventually.ts'

const silent = { debug: () => {}, warn: () => {} }

/** Follows the Buffers of a namespace, over outages of the API server too. */
export class Readiness {
  readonly #readyAt = new Map<string, number>()
  readonly #stop = new AbortController()
  readonly #running: Promise<void>

  constructor(api: ApiServer, namespace: string) {
    const reflector = new Reflector<BufferResource>({
      api,
      namespace,
      clock: systemClock(),
      randomness: systemRandomness(),
      log: silent,
      collection: { root: `/apis/${GROUP}/${VERSION}`, plural: PLURAL },
      replica: {
        put: (buffer) => this.#see(buffer),
        remove: () => {},
        replace: (buffers) => {
          for (const buffer of buffers) this.#see(buffer)
        },
      },
    })
    this.#running = reflector.run(this.#stop.signal)
  }

  /** When each was first seen ready at the generation, `performance.now()` ms; in the order of `names`. */
  until(names: readonly string[], generation: number, timeoutMs: number): Promise<number[]> {
    return eventually(
      () => {
        const times = names.map((name) => this.#readyAt.get(`${name} ${generation}`))
        const ready = times.filter((each) => each !== undefined)
        if (ready.length < names.length) throw new Error(`${ready.length} of ${names.length} are ready`)
        return ready
      },
      { timeoutMs, everyMs: 5 },
    )
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  #see({ metadata: { name, generation }, status }: BufferResource): void {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')
    if (ready?.status !== 'True' || ready.observedGeneration !== generation) return
    const key = `${name} ${generation}`
    if (!this.#readyAt.has(key)) this.#readyAt.set(key, performance.now())
  }
}

export interface Settling {
  readonly atService: (name: string) => Promise<unknown>
  readonly parallel: number
  readonly until: number
}

/**
 * Makes Buffers like `model` with its status, each with what `atService` makes of its name, as long as `until`
 * (`performance.now()` ms) allows; answers how many.
 */
export async function settle(
  api: ApiServer,
  model: BufferResource,
  names: readonly string[],
  { atService, parallel, until }: Settling,
): Promise<number> {
  const path = `/apis/${API_VERSION}/namespaces/${model.metadata.namespace}/${PLURAL}`
  let made = 0
  await inParallel(names, parallel, async (name) => {
    if (performance.now() > until) return
    await atService(name)
    const { apiVersion, kind, spec } = model
    const body = { apiVersion, kind, metadata: { name, finalizers: [FINALIZER] }, spec }
    await api.request('POST', path, { body })
    const status = { ...model.status, bufferId: name }
    const contentType = 'application/merge-patch+json'
    await api.request('PATCH', `${path}/${name}/status`, { contentType, body: { status } })
    made++
  })
  return made
}

export async function inParallel(
  names: readonly string[],
  parallel: number,
  work: (name: string) => Promise<unknown>,
): Promise<void> {
  const left = [...names].reverse()
  const worker = async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await work(name)
  }
  await Promise.all(Array.from({ length: parallel }, worker))
}
