import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { chart, helm, leastCluster } from './helm.ts'

/** Rules, or the whole policy, and what is said against them. */
const refused: readonly [object, string][] = [
  [{ enabled: true }, "'/admissionPolicy/rules': minItems: got 0, want 1"],
  [{ validationActions: ['Deny', 'Warn'] }, "'/admissionPolicy/validationActions'"],
  [{ rules: [{ allowedHosts: ['a.example'] }] }, "missing property 'namespaceSelector'"],
  [
    { rules: [{ namespaceSelector: {}, allowedHosts: [] }] },
    "'/admissionPolicy/rules/0/allowedHosts': minItems",
  ],
  [
    { rules: [{ namespaceSelector: { team: 'shop' }, allowedHosts: ['*'] }] },
    "properties 'team' not allowed",
  ],
  ...[
    'https://a',
    'a/b',
    'bücher.example',
    '*.',
    '*:80',
    'a:0',
    'a:070',
    'a.*',
    '*a',
    'a b',
    '.a',
    'a.',
    '',
  ].map((host): [object, string] => [
    { rules: [{ namespaceSelector: {}, allowedHosts: [host] }] },
    "'/admissionPolicy/rules/0/allowedHosts/0': '",
  ]),
]

describe('values of the policy of hosts that are refused', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  for (const [admissionPolicy, why] of refused)
    it(`${JSON.stringify(admissionPolicy)}: ${why}`, async () => {
      const values = [leastCluster, { admissionPolicy }]
      const { code, stderr } = await helm(cluster, ['template', 'p', chart], { values })
      expect(code).to.equal(1)
      expect(stderr).to.include(why)
    })
})
