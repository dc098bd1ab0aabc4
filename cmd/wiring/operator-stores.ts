/** What the operator watches: Buffers, and Secrets without their values, of its namespaces, each in a store that its reflectors fill. */
import { isDeepStrictEqual } from 'node:util'
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'
import type { Logger } from '../../internal/telemetry/logger.ts'
import { Cache } from '../../operator/controller/cache.ts'
import type { OperatorMetrics } from '../../operator/controller/metrics.ts'
import { keyOf, type Named } from '../../operator/controller/ports.ts'
import type { WorkQueue } from '../../operator/controller/work-queue.ts'
import type { ApiServer, Query } from '../../operator/kubernetes/api-server.ts'
import { type Collection, Reflector } from '../../operator/kubernetes/reflector.ts'
import { BUFFER_ID_INDEX } from '../../operator/reconcile/buffer-id-claims.ts'
import { bufferIdOf } from '../../operator/reconcile/desired-buffer.ts'
import type { SecretMetadata } from '../../operator/reconcile/ports.ts'
import { secretNames } from '../../operator/reconcile/secret-values.ts'
import { ANNOTATIONS, type BufferResource, GROUP, PLURAL, VERSION } from '../../operator/resource.ts'

const BUFFERS: Collection = { root: `/apis/${GROUP}/${VERSION}`, plural: PLURAL }
const SECRETS: Collection = { root: '/api/v1', plural: 'secrets' }
/** What no Buffer can mean, and what fills memory where Helm is used much. */
const OTHER_SECRETS = 'type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token'
/** Index of the Buffers by the Secrets that they name, `namespace/name`. */
const SECRET_INDEX = 'secret'

export interface Stores {
  readonly buffers: Cache<BufferResource>
  readonly secrets: Cache<SecretMetadata>
}

export interface WatchOptions {
  readonly api: ApiServer
  /** undefined: all. */
  readonly namespaces: readonly string[] | undefined
  readonly clock: Clock
  readonly randomness: Randomness
  readonly log: Logger
  readonly telemetry: OperatorMetrics['reflector']
}

export function createStores(log: Logger): Stores {
  const onFault = (error: unknown, key: string) =>
    log.error({ err: error, resource: key }, 'unusable resource')
  const buffers = new Cache<BufferResource>({
    onFault,
    indexers: {
      [BUFFER_ID_INDEX]: (buffer) => [bufferIdOf(buffer)],
      [SECRET_INDEX]: (buffer) => secretNames(buffer).map((name) => `${buffer.metadata.namespace}/${name}`),
    },
  })
  return { buffers, secrets: new Cache<SecretMetadata>({ onFault }) }
}

export interface Watches {
  /** Resolves once every store holds what the API server has; rejects when `signal` is aborted before. */
  start(signal: AbortSignal): Promise<void>
  stop(): Promise<void>
  /** Seconds since each kind was last heard of, in the namespace where that is longest ago. */
  silence(now: number): Iterable<readonly [kind: string, seconds: number]>
}

/** Of both stores, in every namespace; nothing is asked before `start`. */
export function createWatches({ buffers, secrets }: Stores, options: WatchOptions): Watches {
  const { namespaces = [undefined], ...rest } = options
  const of = <T extends Named>(
    collection: Collection,
    replica: Cache<T>,
    more: { query?: Query; metadataOnly?: boolean } = {},
  ) =>
    namespaces.map(
      (namespace) =>
        new Reflector<T>({
          ...rest,
          collection,
          replica,
          ...more,
          ...(namespace !== undefined && { namespace }),
        }),
    )
  const reflectors = [
    ...of(SECRETS, secrets, { query: { fieldSelector: OTHER_SECRETS }, metadataOnly: true }),
    ...of(BUFFERS, buffers),
  ]
  const abort = new AbortController()
  let ends: Promise<void>[] = []
  return {
    async start(signal) {
      ends = reflectors.map((reflector) => reflector.run(abort.signal))
      const synced = Promise.all(reflectors.map((reflector) => reflector.synced))
      try {
        await Promise.race([synced, rejection(signal)])
      } catch (error) {
        abort.abort()
        throw error
      }
    },
    async stop() {
      abort.abort()
      await Promise.all(ends)
    },
    silence: (now) => silenceOf(reflectors, now),
  }
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

function silenceOf(
  reflectors: readonly { plural: string; heardAt: number | undefined }[],
  now: number,
): Map<string, number> {
  const silence = new Map<string, number>()
  for (const { plural, heardAt } of reflectors) {
    if (heardAt === undefined) continue
    silence.set(plural, Math.max(silence.get(plural) ?? 0, (now - heardAt) / 1_000))
  }
  return silence
}

/** A Buffer is reconciled when it changed, and when a Secret that it names did, whether that comes or goes. */
export function feed(
  queue: WorkQueue,
  { buffers, secrets }: Stores,
  removed: (last: BufferResource) => void,
): void {
  buffers.subscribe(({ key, before, after, last }) => {
    if (last !== undefined) removed(last)
    if (before === undefined || after === undefined || asksForPass(before, after)) queue.add(key)
  })
  secrets.subscribe(({ key }) => {
    for (const buffer of buffers.byIndex(SECRET_INDEX, key)) queue.add(keyOf(buffer))
  })
  for (const buffer of buffers.list()) queue.add(keyOf(buffer))
}

/** Not for the operator's own status: a failure that is told of would be repeated at once. */
function asksForPass({ metadata: before }: BufferResource, { metadata: after }: BufferResource): boolean {
  return (
    before.generation !== after.generation ||
    before.deletionTimestamp !== after.deletionTimestamp ||
    ANNOTATIONS.some((name) => before.annotations?.[name] !== after.annotations?.[name]) ||
    !isDeepStrictEqual(before.finalizers, after.finalizers)
  )
}
