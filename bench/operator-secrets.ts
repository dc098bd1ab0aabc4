/**
 * What the operator holds where there are many large Secrets: each Buffer names a Secret of its own of nearly 1 MB, and
 * others are there that no Buffer names.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type Kube, kubectlOk, start, stopKube } from '../test/kube/kube.ts'
import { apiServer, names } from '../test/operator/kubernetes/cluster.ts'
import { type Mount, mountServiceAccount, podEnvironment } from '../test/operator/kubernetes/mount.ts'
import { OperatorHarness } from '../test/operator/reconcile/harness.ts'
import { eventually } from '../test/support/eventually.ts'
import { createInstallation } from '../test/support/service.ts'
import { MEMORY_EVENT, REPORT_OPTIONS, REPORT_SIGNAL } from './cluster/memory-report.ts'
import { table } from './figures.ts'
import { inParallel, Readiness } from './operator/resources.ts'

export interface SecretSizes {
  readonly buffers: number
  readonly secrets: number
  /** Of the Secrets that Buffers name, bytes. */
  readonly bytes: number
}

/** What `cmd/role.sh` sets for the operator. */
const AS_IN_THE_IMAGE = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_TRIM_THRESHOLD_: '131072',
  MALLOC_MMAP_THRESHOLD_: '131072',
}
const PARALLEL = 20
const WAIT_MS = 600_000

/** Markdown. */
export async function measureSecrets({ buffers, secrets, bytes }: SecretSizes): Promise<string> {
  const cluster = await start({ parts: '' })
  if (cluster === undefined) throw new Error('the Kubernetes parts are not built: npm run test:kube')
  const installation = await createInstallation({ shared: true, env: { PENSTOCK_LOG_LEVEL: 'info' } })
  await installation.start()
  const harness = await OperatorHarness.open(cluster, installation)
  const api = apiServer(cluster)
  const all = names('many', buffers)
  // Filler in a key that nobody reads: a Secret is fetched as a whole.
  const filler = randomBytes(Math.floor((bytes * 3) / 4)).toString('base64')
  await inParallel(all, PARALLEL, (name) => harness.createSecret(name, { apiKey: harness.api.key!, filler }))
  await inParallel(names('other', secrets - buffers), PARALLEL, (name) =>
    harness.createSecret(name, { value: 'x' }, harness.namespaces[1]),
  )
  const operator = await harness.spawn(
    {
      ...podEnvironment(await accountOf(cluster, harness)),
      PENSTOCK_LOG_LEVEL: 'info',
      PENSTOCK_VERIFY_SECONDS: '60',
      ...AS_IN_THE_IMAGE,
      NODE_OPTIONS: `${REPORT_OPTIONS} --max-semi-space-size=2`,
    },
    'test/operator/pod.ts',
    ['--optimize-for-size'],
  )
  await harness.untilLogged(operator, 'leading')
  const memory = async () => {
    const reports = () => operator.events.filter(({ msg }) => msg === MEMORY_EVENT)
    const before = reports().length
    operator.child.kill(REPORT_SIGNAL)
    const { rss, heapUsed } = await eventually(() => reports()[before] ?? false, { timeoutMs: 30_000 })
    return [Number(rss), Number(heapUsed)].map((size) => (size / 2 ** 20).toFixed(0))
  }
  const synced = await memory()
  const readiness = new Readiness(api, harness.namespace)
  await inParallel(all, PARALLEL, (name) => harness.create(name, { credentialsRef: { name } }))
  await readiness.until(all, 1, WAIT_MS)
  const ready = await memory()
  const peak = await peakOf(operator.child.pid!)
  await readiness.stop()
  await harness.close()
  api.close()
  await installation.stop()
  await stopKube(cluster)
  return table(
    ['moment', 'RSS MiB', 'heap MiB'],
    [
      [`${secrets.toLocaleString('en')} Secrets synced`, ...synced],
      [`${buffers.toLocaleString('en')} Buffers ready`, ...ready],
      ['most since the start', peak, ''],
    ],
  )
}

async function accountOf(cluster: Kube, { namespace }: OperatorHarness): Promise<Mount> {
  await kubectlOk(cluster, ['-n', namespace, 'create', 'serviceaccount', 'operator'])
  const binding = ['--clusterrole=cluster-admin', `--serviceaccount=${namespace}:operator`]
  await kubectlOk(cluster, ['create', 'clusterrolebinding', 'operator', ...binding])
  return mountServiceAccount(cluster, namespace, 'operator')
}

/** MiB; Linux. */
async function peakOf(pid: number): Promise<string> {
  const [, kib = '0'] = /VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kib) / 1_024).toFixed(0)
}
