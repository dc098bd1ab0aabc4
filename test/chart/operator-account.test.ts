/** No other pod runs as the account that has the rights of the operator. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { leastCluster, leastLocal, refusedAs, render } from './helm.ts'

const SHARED = 'operator.serviceAccount.name must be of the operator alone: the pods of'
const operator = (name: string, create = true) => ({ operator: { serviceAccount: { name, create } } })
const roleOf = (role: string) => ({ [role]: { serviceAccount: { name: 'app', create: false } } })

describe('the account of the operator', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  for (const [what, values, program] of [
    ['the shared one', [leastCluster, operator('p-penstock')], 'actor run as p-penstock'],
    ['the shared one, not made', [leastCluster, operator('p-penstock', false)], 'actor run as p-penstock'],
    ['that of a role', [leastCluster, operator('app', false), roleOf('admin')], 'admin run as app'],
    ['that of a role, made', [leastCluster, operator('app'), roleOf('admin')], 'admin run as app'],
    [
      'that which a role makes',
      [leastCluster, operator('app'), { ingress: { serviceAccount: { name: 'app' } } }],
      'ingress run as app',
    ],
    [
      'its own by default, which a role names',
      [leastCluster, { actor: { serviceAccount: { name: 'p-penstock-operator', create: false } } }],
      'actor run as p-penstock-operator',
    ],
    [
      'that of the migration',
      [leastCluster, operator('app'), { migrate: { serviceAccountName: 'app' } }],
      'migrate run as app',
    ],
    [
      'that of the test',
      [
        leastCluster,
        operator('app'),
        { ownerKeysSecret: { name: 'keys' }, test: { serviceAccountName: 'app' } },
      ],
      'test run as app',
    ],
    ['that of the local pod', [leastLocal, operator('app'), roleOf('local')], 'local run as app'],
  ] as const) {
    it(`is not ${what}`, () =>
      refusedAs(cluster, values, `${SHARED} ${program} too, and would get its rights`))
  }

  it('lets others share an account where the operator is off, or where they have no pods', async () => {
    const shared = operator('app')
    for (const values of [
      [leastCluster, shared, roleOf('admin'), { operator: { enabled: false } }],
      [leastCluster, shared, roleOf('local'), { test: { serviceAccountName: 'app' } }],
      [leastLocal, shared, roleOf('admin'), { migrate: { serviceAccountName: 'app' } }],
    ]) {
      expect((await render(cluster, values)).length).to.be.above(5)
    }
  })
})
