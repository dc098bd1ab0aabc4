/** The operator with exactly the account and the Roles of the chart, and with one verb less of them at a time. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { FINALIZER } from '../../../operator/resource.ts'
import { leastCluster, type Manifest, render } from '../../chart/helm.ts'
import { type Kube, kubectlOk, kubeOrSkip } from '../../kube/kube.ts'
import type { Service } from '../../support/service.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { apiServer } from '../kubernetes/cluster.ts'
import { type Mount, mountServiceAccount, podEnvironment } from '../kubernetes/mount.ts'
import { inTime, OperatorHarness } from './harness.ts'

/** As the chart names it for the release `p`: account, Lease and Role of the Lease. */
const ACCOUNT = 'p-penstock-operator'
const RIGHTS = ['ServiceAccount', 'Role', 'RoleBinding']
const LEASES = '/apis/coordination.k8s.io/v1/namespaces'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

/** A right, and what happens to `name` without it. */
type Case = readonly [
  verb: string,
  resource: string,
  stops: (name: string, operator: Service) => Promise<void>,
]

describe("the operator with the chart's account", function () {
  this.timeout(180_000)
  let cluster: Kube
  let harness: OperatorHarness
  let admin: ApiServer
  let rights: Manifest[]
  let mount: Mount

  before(async function () {
    cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    admin = apiServer(cluster)
    const values = [leastCluster, { operator: { watchNamespaces: [harness.namespace] } }]
    const manifests = await render(cluster, values, { namespace: harness.namespace })
    rights = manifests.filter(
      ({ kind, metadata }) => RIGHTS.includes(kind) && metadata.name.startsWith(ACCOUNT),
    )
    await grant(rights)
    for (const [verb, resource] of cases) await untilAllowed(verb, resource, true)
    mount = await mountServiceAccount(cluster, harness.namespace, ACCOUNT)
  })

  after(async () => {
    await harness?.close()
    admin?.close()
  })

  const operate = () =>
    harness.spawn(
      {
        ...podEnvironment(mount),
        PENSTOCK_WATCH_NAMESPACES: harness.namespace,
        PENSTOCK_LEASE_NAME: ACCOUNT,
      },
      'test/operator/pod.ts',
    )

  it('creates, updates and deletes, writes Events, leads and hands over, and is refused nothing', async () => {
    const first = await operate()
    await harness.untilLogged(first, 'leading')
    const name = await live(harness.name('allowed'))
    expect((await harness.api.readBuffer(name)).batch.maxItems).to.equal(2)
    await inTime(async () => (await seriesOf(name)).some((count) => count >= 2))
    await harness.remove(name)
    await harness.untilGone(name)
    first.child.kill('SIGTERM')
    expect(await first.exited()).to.equal(0)

    const second = await operate()
    await harness.untilLogged(second, 'leading')
    second.child.kill('SIGTERM')
    expect(await second.exited()).to.equal(0)
    expect(harness.output()).to.not.include('forbidden')
  })

  const untouched = async (name: string) => {
    expect((await harness.read(name)).metadata.finalizers).to.equal(undefined)
    expect(harness.proxy.seen(name)).to.deep.equal([])
  }
  const neverReady = async (name: string, { events }: Service) => {
    expect(events.filter(({ msg }) => msg === 'ready')).to.deep.equal([])
    await untouched(name)
  }
  const neverLeads = async (name: string, { events }: Service) => {
    expect(events.filter(({ msg }) => msg === 'leading')).to.deep.equal([])
    await untouched(name)
  }
  /** Each watch is refused, so what changes is only seen by the list that follows. */
  const seesByLists = async (name: string, { events }: Service) => {
    await harness.untilReady(name)
    await inTime(() => events.filter(({ msg }) => msg === 'watch failed').length >= 2)
  }
  const cases: readonly Case[] = [
    ['list', 'buffers', neverReady],
    ['watch', 'buffers', seesByLists],
    ['patch', 'buffers', untouched],
    [
      'patch',
      'buffers/status',
      async (name) => {
        const { metadata, status } = await harness.read(name)
        expect(metadata.finalizers).to.deep.equal([FINALIZER])
        expect(status).to.equal(undefined)
        expect(harness.proxy.seen(name, 'POST')).to.deep.equal([])
      },
    ],
    ['get', 'secrets', untouched],
    ['list', 'secrets', neverReady],
    ['watch', 'secrets', seesByLists],
    [
      'create',
      'events',
      async (name) => {
        await harness.untilReady(name)
        expect((await harness.events()).filter(({ regarding }) => regarding.name === name)).to.deep.equal([])
      },
    ],
    [
      'patch',
      'events',
      async (name) => {
        await harness.untilEvent(name, 'Updated')
        expect(await seriesOf(name)).to.deep.equal([])
      },
    ],
    ['create', 'leases', neverLeads],
    ['get', 'leases', neverLeads],
    [
      'update',
      'leases',
      async (_name, operator) => {
        expect(await operator.exited()).to.equal(1)
        expect(operator.events.at(-1)?.msg).to.equal('the lease was not renewed in time')
      },
    ],
  ]

  it('has no right that is not taken from it below', () => {
    const granted = rights.flatMap(({ rules = [] }) =>
      (rules as Rule[]).flatMap(({ resources, verbs }) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
      ),
    )
    expect(granted).to.have.members(cases.map(([verb, resource]) => `${verb} ${resource}`))
  })

  for (const [verb, resource, stops] of cases) {
    it(`cannot do without ${verb} of ${resource}, and says so`, async () => {
      await grant(rights.map((each) => without(each, verb, resource)))
      await untilAllowed(verb, resource, false)
      // Its end is judged here: some end by themselves.
      const operator = await operate()
      harness.operators.pop()
      try {
        const name = harness.name('stopped')
        await harness.create(name)
        if (resource === 'events') await live(name)
        const refusal = `cannot ${verb} resource "${resource}"`
        await inTime(() => operator.events.some(({ err }) => messageOf(err).includes(refusal)))
        await stops(name, operator)
        await grant(rights)
        await untilAllowed(verb, resource, true)
      } finally {
        operator.child.kill('SIGKILL')
        await operator.exited()
      }
      await freeLease()
    })
  }

  /** Ready, and changed twice in the same way, so that one Event is counted. */
  async function live(name: string): Promise<string> {
    await harness.read(name).catch(() => harness.create(name))
    await harness.untilReady(name)
    for (const maxItems of [1, 2]) {
      await harness.patch(name, { spec: { batch: { maxItems } } })
      await harness.untilReady(name)
    }
    return name
  }

  async function seriesOf(name: string): Promise<number[]> {
    const counted = (await harness.events()) as unknown as {
      regarding: { name: string }
      series?: { count: number }
    }[]
    return counted.flatMap(({ regarding, series }) =>
      regarding.name === name && series ? [series.count] : [],
    )
  }

  async function grant(manifests: readonly Manifest[]): Promise<void> {
    const list = { apiVersion: 'v1', kind: 'List', items: manifests }
    await kubectlOk(cluster, ['apply', '-f', '-'], JSON.stringify(list))
  }

  /** The API server judges by what it has heard of the Roles, a moment later. */
  async function untilAllowed(verb: string, path: string, wanted: boolean): Promise<void> {
    const [resource, subresource] = path.split('/')
    const group = (rights.flatMap(({ rules = [] }) => rules) as Rule[]).find(({ resources }) =>
      resources.includes(path),
    )?.apiGroups[0]
    const spec = {
      user: `system:serviceaccount:${harness.namespace}:${ACCOUNT}`,
      resourceAttributes: {
        namespace: harness.namespace,
        group,
        resource,
        subresource,
        verb,
        ...(resource === 'leases' && { name: ACCOUNT }),
      },
    }
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec }
    const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
    await inTime(async () => {
      const { status } = await admin.request<{ status: { allowed: boolean } }>('POST', reviews, { body })
      return status.allowed === wanted
    })
  }

  /** That of a killed leader would hold the next one up. */
  async function freeLease(): Promise<void> {
    await admin.request('DELETE', `${LEASES}/${harness.namespace}/leases/${ACCOUNT}`).catch(() => undefined)
  }

  /** By a token as the pod would have it. */
})

function without(manifest: Manifest, verb: string, resource: string): Manifest {
  if (manifest.rules === undefined) return manifest
  const rules = (manifest.rules as Rule[]).flatMap((rule) => {
    if (!rule.resources.includes(resource)) return [rule]
    const verbs = rule.verbs.filter((each) => each !== verb)
    return verbs.length > 0 ? [{ ...rule, verbs }] : []
  })
  return { ...manifest, rules }
}

function messageOf(error: unknown): string {
  return (error as { message?: string } | undefined)?.message ?? ''
}
