/** The operator's parts, joined: what it watches, what it reconciles with, and the lead that lets it. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'
import type { Lifecycle } from '../../internal/runtime/lifecycle.ts'
import type { Logger } from '../../internal/telemetry/logger.ts'
import { startMetrics } from '../../internal/telemetry/metrics.ts'
import { startOps } from '../../internal/telemetry/ops-server.ts'
import { createAdminClient } from '../../operator/admin/client.ts'
import { withCrowdReads } from '../../operator/admin/crowd-reads.ts'
import { StatesFollower } from '../../operator/admin/states-follower.ts'
import { Controller } from '../../operator/controller/controller.ts'
import { type OperatorMetrics, operatorMetrics } from '../../operator/controller/metrics.ts'
import { Outage } from '../../operator/controller/outage.ts'
import { WorkQueue } from '../../operator/controller/work-queue.ts'
import type { ClusterAccess } from '../../operator/kubernetes/access.ts'
import { ApiServer } from '../../operator/kubernetes/api-server.ts'
import { BufferResourceWriter } from '../../operator/kubernetes/buffer-writer.ts'
import { EventRecorder } from '../../operator/kubernetes/events.ts'
import { LeaderElection } from '../../operator/kubernetes/leader-election.ts'
import { SecretReader } from '../../operator/kubernetes/secret-reader.ts'
import { BufferIdClaims } from '../../operator/reconcile/buffer-id-claims.ts'
import { BufferReconciler } from '../../operator/reconcile/reconciler.ts'
import type { Config } from '../config/config.ts'
import { createStores, createWatches, feed, type Stores, type Watches } from './operator-stores.ts'

/** What Events that are not written yet get when the operator stops, ms. */
const EVENTS_DRAIN_MS = 1_000

export interface OperatorParts {
  readonly config: Config
  readonly access: ClusterAccess
  /** PEM of the authorities of the admin API; undefined: the machine's. */
  readonly ca: string | undefined
  readonly version: string
  readonly log: Logger
  readonly clock: Clock
  readonly randomness: Randomness
  readonly lifecycle: Lifecycle
}

/** What the ops port tells of; it answers from the first moment on. */
interface Running {
  readonly queue: WorkQueue
  watches?: Watches
  election?: LeaderElection
  synced: boolean
}

/** Resolves when it stands for election; `lost` is called when it led and does no longer. */
export async function startOperator(parts: OperatorParts, lost: (error: Error) => void): Promise<void> {
  const { log, clock, lifecycle } = parts
  const running: Running = { queue: new WorkQueue(clock), synced: false }
  const { telemetry, opsPort } = await startObserving(parts, running)
  log.info({ opsPort }, 'watching')
  const api = await lifecycle.acquire(
    'API server',
    () => new ApiServer(parts.access),
    (it) => it.close(),
  )
  const stores = createStores(log)
  await startWatching(parts, { running, stores, api, telemetry })
  const reconciler = await createReconciler(parts, { running, stores, api })
  const lead = () => {
    const controller = new Controller({
      queue: running.queue,
      reconciler,
      clock,
      log,
      telemetry: telemetry.controller,
    })
    feed(running.queue, stores, (last) => reconciler.removed(last))
    controller.start()
    // Refused while the process stops: then nothing was handed out either, or it ends with the process.
    lifecycle
      .acquire(
        'controller',
        () => controller,
        (it) => it.stop(),
      )
      .catch(() => controller.stop())
  }
  const election = await stand(parts, api)
  running.election = election
  log.info({ opsPort, buffers: stores.buffers.size }, 'ready')
  election.run(lead, lost)
}

async function startObserving({ config, clock, lifecycle }: OperatorParts, running: Running) {
  const metrics = await lifecycle.acquire(
    'metrics',
    () => startMetrics(config.role, process.env),
    (it) => it.shutdown(),
  )
  const telemetry = operatorMetrics(metrics.meter, {
    depth: () => running.queue.depth,
    failing: () => running.queue.failing,
    leading: () => running.election?.leading ?? false,
    silence: () => running.watches?.silence(clock.monotonic()) ?? [],
  })
  const ready = () => running.synced && !lifecycle.stopping
  const ops = await lifecycle.acquire(
    'ops port',
    () => startOps({ host: config.host, port: config.opsPort, ready, metrics: metrics.handle }),
    (it) => it.close(),
  )
  return { telemetry, opsPort: ops.port }
}

interface Watching {
  readonly running: Running
  readonly stores: Stores
  readonly api: ApiServer
  readonly telemetry: OperatorMetrics
}

/** Resolves once every store holds what the API server has. */
async function startWatching(
  parts: OperatorParts,
  { running, stores, api, telemetry }: Watching,
): Promise<void> {
  const { config, clock, randomness, log, lifecycle } = parts
  const watches = createWatches(stores, {
    api,
    clock,
    randomness,
    log,
    telemetry: telemetry.reflector,
    namespaces: config.operator.watchNamespaces,
  })
  running.watches = watches
  await lifecycle.acquire(
    'watches',
    (signal) => watches.start(signal),
    () => watches.stop(),
  )
  running.synced = true
}

async function createReconciler(
  parts: OperatorParts,
  { running, stores, api }: Pick<Watching, 'running' | 'stores' | 'api'>,
): Promise<BufferReconciler> {
  const { config, ca, version, clock, randomness, log, lifecycle } = parts
  const { adminUrl, verifySeconds } = config.operator
  const userAgent = `penstock-operator/${version}`
  const admin = await lifecycle.acquire(
    'admin API',
    () => createAdminClient({ url: adminUrl!, userAgent, clock, ...(ca !== undefined && { ca }) }),
    (it) => it.close(),
  )
  const events = await lifecycle.acquire(
    'events',
    () => new EventRecorder({ api, instance: hostname(), clock, randomness, log }),
    (it) => it.close(EVENTS_DRAIN_MS),
  )
  const service = await lifecycle.acquire(
    'outage',
    () =>
      new Outage({
        clock,
        randomness,
        retry: (key) => running.queue.add(key),
        onReturn: (resources) => log.info({ resources }, 'the admin API answers again'),
      }),
    async (it) => it.close(),
  )
  const follower = await lifecycle.acquire(
    'states of buffers',
    () =>
      new StatesFollower({
        admin,
        clock,
        randomness,
        log,
        onTold(resources, states) {
          for (const resource of resources) if (reconciler.told(resource, states)) running.queue.add(resource)
        },
      }),
    (it) => it.close(),
  )
  const reconciler = new BufferReconciler({
    admin: withCrowdReads(admin, clock),
    service,
    follower,
    events,
    clock,
    randomness,
    log,
    resources: stores.buffers,
    secrets: stores.secrets,
    values: new SecretReader(api, clock),
    claims: new BufferIdClaims(stores.buffers, clock),
    writer: new BufferResourceWriter(api),
    verifyMs: verifySeconds * 1_000,
  })
  return reconciler
}

function stand(parts: OperatorParts, api: ApiServer): Promise<LeaderElection> {
  const { config, access, clock, randomness, log, lifecycle } = parts
  const { leaseName: name, leaseNamespace } = config.operator
  const namespace = leaseNamespace ?? access.namespace ?? 'default'
  const identity = `${hostname()}_${randomUUID()}`
  return lifecycle.acquire(
    'leadership',
    () => new LeaderElection({ api, namespace, name, identity, clock, randomness, log }),
    (it) => it.stop(),
  )
}
