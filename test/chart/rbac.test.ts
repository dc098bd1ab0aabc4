/** What the operator's account may do, as the API server judges it: all that it needs, and nothing beside it. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { GROUP } from '../../operator/resource.ts'
import { type Kube, kubectlOk, kubeOrSkip, namespace } from '../kube/kube.ts'
import { leastCluster, type Manifest, render } from './helm.ts'

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']
const KINDS = ['ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding']
const LEASES = 'coordination.k8s.io/leases'
/** In every namespace that is watched. */
const WATCHED: Record<string, string[]> = {
  [`${GROUP}/buffers`]: ['list', 'watch', 'patch'],
  [`${GROUP}/buffers/status`]: ['patch'],
  '/secrets': ['get', 'list', 'watch'],
  'events.k8s.io/events': ['create', 'patch'],
}
const RESOURCES = [
  ...[
    ...Object.keys(WATCHED),
    LEASES,
    `${GROUP}/buffers/finalizers`,
    '/events',
    '/pods',
    '/pods/exec',
    '/configmaps',
  ],
  ...[
    '/nodes',
    '/namespaces',
    '/serviceaccounts',
    '/serviceaccounts/token',
    'apps/deployments',
    'batch/jobs',
  ],
  ...['rbac.authorization.k8s.io/roles', 'rbac.authorization.k8s.io/clusterroles'],
  'apiextensions.k8s.io/customresourcedefinitions',
]

interface Question {
  readonly namespace: string
  /** `group/resource[/subresource]`. */
  readonly resource: string
  readonly verb: string
  readonly name?: string
}

describe("the operator's rights", function () {
  this.timeout(120_000)
  let cluster: Kube
  const applied: Manifest[] = []
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })
  after(async () => {
    for (const { kind, metadata } of applied) await kubectlOk(cluster, ['delete', kind, metadata.name])
  })

  const grant = async (own: string, watchNamespaces: string[]) => {
    const manifests = await render(cluster, [leastCluster, { operator: { watchNamespaces } }], {
      namespace: own,
    })
    const rights = manifests.filter(({ kind }) => KINDS.includes(kind))
    applied.push(...rights.filter(({ kind }) => kind.startsWith('Cluster')))
    await kubectlOk(cluster, ['apply', '-f', '-'], listOf(rights))
    return rights
  }
  /** `verb resource` of all that the account may do. */
  const allowed = async (account: string, questions: readonly Question[]): Promise<string[]> => {
    const args = ['create', '-o', 'jsonpath={.status.allowed}{"\\n"}', '-f', '-']
    const answers = (await kubectlOk(cluster, args, listOf(questions.map(review(account)))))
      .trim()
      .split('\n')
    expect(answers.length).to.equal(questions.length)
    return questions.flatMap(({ verb, resource }, index) =>
      answers[index] === 'true' ? [`${verb} ${resource}`] : [],
    )
  }
  const everything = (where: string, name?: string) =>
    RESOURCES.flatMap((resource) =>
      VERBS.map((verb) => ({ namespace: where, resource, verb, ...(name !== undefined && { name }) })),
    )
  const flat = (table: Record<string, string[]>) =>
    Object.entries(table).flatMap(([resource, verbs]) => verbs.map((verb) => `${verb} ${resource}`))

  it('name every verb and resource', async () => {
    for (const watchNamespaces of [[], ['a', 'b']]) {
      const manifests = await render(cluster, [leastCluster, { operator: { watchNamespaces } }])
      const rules = manifests.flatMap((each) => each.rules ?? [])
      expect(rules.length).to.be.above(4)
      expect(JSON.stringify(rules)).not.to.include('*')
    }
  })

  it('are those on Buffers, Secrets and Events in all namespaces, and on its Lease in its own', async () => {
    const [own, other] = [await namespace(cluster, 'rights'), await namespace(cluster, 'rights')]
    await grant(own, [])
    const account = `system:serviceaccount:${own}:p-penstock-operator`
    expect(await allowed(account, everything(other, 'p-penstock-operator'))).to.have.members(flat(WATCHED))
    const lease = { [LEASES]: ['get', 'create', 'update'] }
    expect(await allowed(account, everything(own, 'p-penstock-operator'))).to.have.members(
      flat({ ...WATCHED, ...lease }),
    )
    const othersLease = { [LEASES]: ['create'] }
    expect(await allowed(account, everything(own, 'another'))).to.have.members(
      flat({ ...WATCHED, ...othersLease }),
    )
  })

  it('are none in namespaces that are not watched, and nothing cluster-wide', async () => {
    const [own, watched, other] = [
      await namespace(cluster, 'rights'),
      await namespace(cluster, 'rights'),
      await namespace(cluster, 'rights'),
    ]
    const rights = await grant(own, [watched])
    expect(rights.filter(({ kind }) => kind.startsWith('Cluster'))).to.deep.equal([])
    const account = `system:serviceaccount:${own}:p-penstock-operator`
    expect(await allowed(account, everything(watched))).to.have.members(flat(WATCHED))
    expect(await allowed(account, everything(other))).to.deep.equal([])
    expect(await allowed(account, everything(''))).to.deep.equal([])
    expect(await allowed(account, everything(own))).to.have.members([`create ${LEASES}`])
  })

  it('are the operator’s alone: no other account of the release has any', async () => {
    const own = await namespace(cluster, 'rights')
    await grant(own, [])
    expect(await allowed(`system:serviceaccount:${own}:p-penstock`, everything(own))).to.deep.equal([])
  })
})

function listOf(items: readonly unknown[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

function review(user: string) {
  return ({ namespace, resource: path, verb, name }: Question) => {
    const [group, resource, subresource] = path.split('/')
    return {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      metadata: {},
      spec: { user, resourceAttributes: { namespace, group, resource, subresource, verb, name } },
    }
  }
}
