/**
 * The operator between a real API server and the real service: how long a Buffer takes to be ready, alone and among many,
 * what that costs the service, what the operator holds, and how soon it is right again after an outage of either.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { ApiServer } from '../operator/kubernetes/api-server.ts'
import { restartKube, start, stopKube } from '../test/kube/kube.ts'
import { apiServer, names } from '../test/operator/kubernetes/cluster.ts'
import { OperatorHarness } from '../test/operator/reconcile/harness.ts'
import { eventually } from '../test/support/eventually.ts'
import { createInstallation, type Installation, type Service } from '../test/support/service.ts'
import { MEMORY_EVENT, REPORT_OPTIONS, REPORT_SIGNAL } from './cluster/memory-report.ts'
import { quantile, table } from './figures.ts'
import { inParallel, Readiness, settle } from './operator/resources.ts'

export interface OperatorSizes {
  /** Resources made one after the other. */
  readonly single: number
  /** Made at once. */
  readonly many: number
  /** Edited after the restart of the API server. */
  readonly edited: number
  /** In all, when memory is read at last. */
  readonly held: number
}

/** Whatever the machine does, ms: it is given up then. */
const LIMIT_MS = 400_000
/** The admin API is away for so long: back-off has grown then. */
const OUTAGE_MS = 60_000
/** Filling up to `held` ends so long before it; what it reached is told. */
const AFTER_FILL_MS = 60_000
const WAIT_MS = 150_000
const PARALLEL = 50
/** Nothing is compared with the service unasked while this runs. */
const ENV = {
  PENSTOCK_LOG_LEVEL: 'info',
  PENSTOCK_VERIFY_SECONDS: '86400',
  NODE_OPTIONS: REPORT_OPTIONS,
}

interface Lab {
  readonly harness: OperatorHarness
  readonly installation: Installation
  readonly api: ApiServer
  readonly readiness: Readiness
  operator: Service
}

/** Markdown. */
export async function measureOperator(sizes: OperatorSizes): Promise<string> {
  const limit = new AbortController()
  const given = delay(LIMIT_MS, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`the operator was not measured within ${LIMIT_MS} ms`)
  })
  try {
    return await Promise.race([measure(sizes), given])
  } finally {
    limit.abort()
    given.catch(() => {})
  }
}

async function measure(sizes: OperatorSizes): Promise<string> {
  const fillUntil = performance.now() + LIMIT_MS - AFTER_FILL_MS
  const lab = await open()
  const singles = await oneByOne(lab, names('single', sizes.single))
  const many = names('many', sizes.many)
  const crowd = await atOnce(lab, many)
  const calls = callsOf(lab, many)
  const noop = await resync(lab)
  const small = [sizes.single + sizes.many + 1, await memoryOf(lab.operator)] as const
  const outage = await afterOutage(lab, many)
  const restart = await afterRestart(lab, many.slice(0, sizes.edited))
  const large = await filled(lab, sizes.held - small[0] - 1, fillUntil)
  await close(lab)
  return [
    table(
      [
        'Buffers',
        'number',
        'to Ready, p50 ms',
        'p99 ms',
        'all ready after s',
        'GET a Buffer',
        'POST',
        'PATCH',
      ],
      [
        ['one after the other', String(sizes.single), ...quantiles(singles), '', '', '', ''],
        ['at once', String(sizes.many), ...quantiles(crowd.ms), seconds(crowd.totalMs), ...calls],
      ],
    ),
    `A second start with all of them in order asks the service ${noop} times.`,
    table(
      ['Buffers held', 'RSS MB', 'heap MB'],
      [small, [small[0] + large.made, large.memory] as const].map(rowOf),
    ),
    `After ${seconds(OUTAGE_MS)} s without the admin API, in which all ${sizes.many} were edited, the last one is ready ${seconds(outage.ms)} s after its return, with ${outage.atOnce} requests at once at most, ${outage.lists} lists and ${outage.reads} single reads.`,
    `After SIGKILL and restart of the API server, ${sizes.edited} edits from the moment it is ready are all at the service after ${seconds(restart.ms)} s (API server away for ${seconds(restart.awayMs)} s; ${restart.ended ? 'the operator had ended for its lease, and was started again' : 'the same operator'}).`,
  ].join('\n\n')
}

async function open(): Promise<Lab> {
  const cluster = await start({ parts: '' })
  if (cluster === undefined) throw new Error('the Kubernetes parts are not built: npm run test:kube')
  const installation = await createInstallation({ shared: true, env: { PENSTOCK_LOG_LEVEL: 'info' } })
  await installation.start()
  const harness = await OperatorHarness.open(cluster, installation)
  const api = apiServer(cluster)
  const readiness = new Readiness(api, harness.namespace)
  const operator = await harness.operate(ENV)
  const lab = { harness, installation, api, readiness, operator }
  // Paths that have run before are compiled.
  await oneByOne(lab, names('warm', 5))
  return lab
}

async function close({ harness, installation, api, readiness }: Lab): Promise<void> {
  await readiness.stop()
  await harness.close()
  api.close()
  await installation.stop()
  await stopKube(harness.cluster)
}

/** Ms from each request that makes one to its readiness. */
async function oneByOne({ harness, readiness }: Lab, all: readonly string[]): Promise<number[]> {
  const ms: number[] = []
  for (const name of all) {
    const began = performance.now()
    await harness.create(name)
    const [readyAt] = await readiness.until([name], 1, WAIT_MS)
    ms.push(readyAt! - began)
  }
  return ms
}

async function atOnce({ harness, readiness }: Lab, all: readonly string[]) {
  const began = new Map<string, number>()
  const first = performance.now()
  await inParallel(all, PARALLEL, (name) => {
    began.set(name, performance.now())
    return harness.create(name)
  })
  const times = await readiness.until(all, 1, WAIT_MS)
  return { ms: times.map((at, n) => at - began.get(all[n]!)!), totalMs: Math.max(...times) - first }
}

/** Requests to the service a Buffer, on average: GET, POST, PATCH. */
function callsOf({ harness }: Lab, all: readonly string[]): string[] {
  const seen = all.flatMap((name) => harness.proxy.seen(name))
  return ['GET', 'POST', 'PATCH'].map((method) =>
    (seen.filter((each) => each.method === method).length / all.length).toFixed(2),
  )
}

/** Another operator takes over; requests to the service about what is in order, but for the one that waits for changes. */
async function resync(lab: Lab): Promise<number> {
  const asked = () =>
    lab.harness.proxy.seen().filter(({ path }) => !path.startsWith('/v1/admin/buffer-states')).length
  await stopOperator(lab)
  const before = asked()
  lab.operator = await lab.harness.operate(ENV)
  const behind = 'behind-the-others'
  await oneByOne(lab, [behind])
  return asked() - before - lab.harness.proxy.seen(behind).length
}

async function afterOutage({ harness, readiness }: Lab, all: readonly string[]) {
  harness.proxy.interfere(() => 'reset')
  await inParallel(all, PARALLEL, (name) => harness.patch(name, { spec: { displayName: 'meanwhile' } }))
  await delay(OUTAGE_MS)
  const before = harness.proxy.seen().length
  harness.proxy.mostAtOnce()
  const backAt = performance.now()
  harness.proxy.interfere()
  const times = await readiness.until(all, 2, WAIT_MS)
  const seen = harness.proxy.seen().slice(before)
  const lists = seen.filter(({ path }) => path.startsWith('/v1/admin/buffers?')).length
  const reads = seen.filter(
    ({ method, path }) => method === 'GET' && path.startsWith('/v1/admin/buffers/'),
  ).length
  return { ms: Math.max(...times) - backAt, atOnce: harness.proxy.mostAtOnce(), lists, reads }
}

async function afterRestart(lab: Lab, all: readonly string[]) {
  const { harness, readiness } = lab
  const killedAt = performance.now()
  process.kill(Number(readFileSync(`${harness.cluster.dir}/run/kube-apiserver.pid`, 'utf8')), 'SIGKILL')
  await stopKube(harness.cluster)
  await restartKube(harness.cluster, '')
  const readyAt = performance.now()
  // As the kubelet would: an operator that could not renew its lease in time has ended.
  const ended = lab.operator.child.exitCode !== null
  if (ended) {
    harness.operators.pop()
    lab.operator = await harness.operate(ENV)
  }
  await inParallel(all, PARALLEL, (name) => harness.patch(name, { spec: { displayName: 'edited' } }))
  const times = await readiness.until(all, 3, WAIT_MS)
  return { ms: Math.max(...times) - readyAt, awayMs: readyAt - killedAt, ended }
}

/** With so many more Buffers, which no operator had to make: it finds them settled. */
async function filled(lab: Lab, more: number, until: number) {
  const { harness, api } = lab
  await stopOperator(lab)
  const model = await harness.read('behind-the-others')
  const { url } = model.spec.delivery
  const atService = (name: string) => harness.api.createBuffer(harness.projectId, name, { delivery: { url } })
  const made = await settle(api, model, names('held', more), { atService, parallel: PARALLEL, until })
  const created = () => harness.proxy.seen(undefined, 'POST').length
  const before = created()
  lab.operator = await harness.operate(ENV)
  await oneByOne(lab, ['behind-all-others'])
  const memory = await memoryOf(lab.operator)
  if (created() > before + 1)
    throw new Error('the operator found Buffers that were not settled, and worked on them')
  return { made: made + 1, memory }
}

async function stopOperator({ operator }: Lab): Promise<void> {
  operator.child.kill('SIGTERM')
  const code = await operator.exited()
  if (code !== 0) throw new Error(`the operator ended with ${code}:\n${operator.output()}`)
}

interface Memory {
  readonly rss: number
  readonly heapUsed: number
}

/** After a collection in the operator itself. */
async function memoryOf({ child, events }: Service): Promise<Memory> {
  const reports = () => events.filter(({ msg }) => msg === MEMORY_EVENT)
  const before = reports().length
  child.kill(REPORT_SIGNAL)
  const { rss, heapUsed } = await eventually(() => reports()[before] ?? false)
  return { rss: Number(rss), heapUsed: Number(heapUsed) }
}

function rowOf([held, { rss, heapUsed }]: readonly [number, Memory]): string[] {
  const mb = (bytes: number) => (bytes / 1e6).toFixed(0)
  return [held.toLocaleString('en'), mb(rss), mb(heapUsed)]
}

function quantiles(ms: readonly number[]): string[] {
  return [0.5, 0.99].map((q) => quantile(ms, q).toFixed(0))
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1)
}
