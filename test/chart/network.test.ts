/** Who may talk to whom by the chart's NetworkPolicies, which only some networks enforce: judged here by their text. */
import { BlockList, isIPv6 } from 'node:net'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { leastCluster, type Manifest, podsOf, render, type Values, valuesFile } from './helm.ts'
import { matches } from './policies.ts'

const PUBLIC = ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c']
const PRIVATE = [
  ...[
    '0.0.0.1',
    '10.0.0.1',
    '10.96.0.1',
    '100.64.1.1',
    '127.0.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
  ],
  ...['192.168.1.1', '192.0.0.1', '198.18.0.1', '224.0.0.1', '255.255.255.255'],
  ...[
    '::1',
    'fd00::1',
    'fe80::1',
    'ff02::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    '2002:a00:1::',
    '2001:0:a00::1',
  ],
]

describe('the network policies', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  const policiesOf = async (values: Values = {}) =>
    new Network(await render(cluster, [leastCluster, { ownerKeysSecret: { name: 'keys' } }, values]))

  it('deny what no other allows, in every pod', async () => {
    for (const values of [[leastCluster], [valuesFile('local')]]) {
      const manifests = await render(cluster, values)
      const network = new Network(manifests)
      for (const [name, { metadata }] of podsOf(manifests)) {
        expect(network.isIsolated(metadata.labels, 'Ingress'), name).to.equal(true)
        expect(network.isIsolated(metadata.labels, 'Egress'), name).to.equal(true)
      }
    }
  })

  it('let deliveries out to public addresses, and never to private ones', async () => {
    const network = await policiesOf()
    for (const component of ['actor', 'admin']) {
      for (const address of PUBLIC) expect(network.mayReach(component, address, 8443), address).to.equal(true)
      for (const address of PRIVATE) expect(network.mayReach(component, address, 80), address).to.equal(false)
    }
    for (const component of ['ingress', 'migrate', 'test']) {
      expect(network.mayReach(component, PUBLIC[0]!, 8443), component).to.equal(false)
    }
  })

  it('let deliveries out to private addresses that are allowed destinations', async () => {
    const network = await policiesOf({ config: { allowDestinations: ['10.1.0.0/16', 'fd00:1::/64'] } })
    expect(network.mayReach('actor', '10.1.2.3', 80)).to.equal(true)
    expect(network.mayReach('actor', 'fd00:1::9', 80)).to.equal(true)
    expect(network.mayReach('actor', '10.2.0.1', 80)).to.equal(false)
    expect(network.mayReach('ingress', '10.1.2.3', 80)).to.equal(false)
  })

  it('let programs out to the stores, at named places alone when there are some', async () => {
    const open = await policiesOf()
    for (const component of ['ingress', 'admin', 'actor', 'migrate']) {
      for (const port of [4222, 5432, 53])
        expect(open.mayReach(component, '10.0.0.5', port), component).to.equal(true)
    }
    expect(open.mayReach('operator', '10.0.0.5', 5432)).to.equal(false)
    const to = [{ ipBlock: { cidr: '10.0.0.5/32' } }]
    const narrow = await policiesOf({ networkPolicy: { nats: { ports: [4222], to }, database: { to } } })
    expect(narrow.mayReach('actor', '10.0.0.5', 4222)).to.equal(true)
    expect(narrow.mayReach('actor', '10.0.0.6', 4222)).to.equal(false)
    expect(narrow.mayReach('actor', '10.0.0.6', 5432)).to.equal(false)
  })

  it('let the operator out to the API server', async () => {
    const network = await policiesOf()
    expect(network.mayReach('operator', '10.96.0.1', 443)).to.equal(true)
    expect(network.mayReach('operator', '172.18.0.2', 6443)).to.equal(true)
    expect(network.mayReach('operator', '10.96.0.1', 80)).to.equal(false)
    expect(network.mayReach('ingress', '10.96.0.1', 443)).to.equal(false)
  })

  it('let pods of the release to each other where one calls the other', async () => {
    const network = await policiesOf()
    const calls = (from: string) =>
      ['ingress', 'admin', 'actor', 'operator'].filter((to) => network.mayCall(from, to, 'http'))
    expect(calls('operator')).to.deep.equal(['admin'])
    expect(calls('test')).to.deep.equal(['ingress', 'admin'])
    expect(calls('actor')).to.deep.equal([])
  })

  it('let in whoever the values name, and still the pods of the release', async () => {
    const edge = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'edge' } } }]
    const network = await policiesOf({
      networkPolicy: { ingressFrom: edge, adminFrom: edge, metricsFrom: edge },
    })
    for (const component of ['ingress', 'admin']) {
      expect(network.letsIn(component, 'http'), component).to.deep.include(edge[0])
      expect(network.mayCall('test', component, 'http'), component).to.equal(true)
    }
    expect(network.letsIn('actor', 'ops')).to.deep.equal(edge)
    expect(network.mayCall('operator', 'admin', 'http')).to.equal(true)
    expect((await policiesOf()).letsIn('ingress', 'http')).to.equal('everybody')
  })

  it('are left out on demand', async () => {
    const manifests = await render(cluster, [leastCluster, { networkPolicy: { enabled: false } }])
    expect(manifests.filter(({ kind }) => kind === 'NetworkPolicy')).to.deep.equal([])
  })
})

type Direction = 'Ingress' | 'Egress'

/** Kubernetes' reading of NetworkPolicies, as far as the chart's use it. */
class Network {
  readonly #policies: Manifest[]
  readonly #labels: Map<string, Record<string, string>>

  constructor(manifests: readonly Manifest[]) {
    this.#policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy')
    const labels = [...podsOf(manifests).values()].map(({ metadata }) => metadata.labels)
    this.#labels = new Map(labels.map((each) => [each['app.kubernetes.io/component'], each]))
  }

  isIsolated(labels: Record<string, string>, direction: Direction): boolean {
    return this.#of(labels).some(({ spec }) => spec.policyTypes.includes(direction))
  }

  /** Whether pods of a component may open a connection to an address outside of the release. */
  mayReach(component: string, address: string, port: number): boolean {
    return this.#rules(component, 'egress').some(
      ({ to, ports }) =>
        takesPort(ports, port) && (to === undefined || to.some((peer: Manifest) => contains(peer, address))),
    )
  }

  mayCall(from: string, to: string, port: string): boolean {
    const [callee, caller] = [this.#labelsOf(to), this.#labelsOf(from)]
    const out = this.#rules(from, 'egress').some(
      (rule) => takesPort(rule.ports, port) && names(rule.to, callee),
    )
    const into = this.#rules(to, 'ingress').some(
      (rule) => takesPort(rule.ports, port) && names(rule.from, caller),
    )
    return out && into
  }

  /** The peers that may call a component's port. */
  letsIn(component: string, port: string): Manifest[] | 'everybody' {
    const rules = this.#rules(component, 'ingress').filter(({ ports }) => takesPort(ports, port))
    return rules.some(({ from }) => from === undefined) ? 'everybody' : rules.flatMap(({ from }) => from)
  }

  #rules(component: string, direction: 'ingress' | 'egress'): Manifest[] {
    return this.#of(this.#labelsOf(component)).flatMap(({ spec }) => spec[direction] ?? [])
  }

  #labelsOf(component: string): Record<string, string> {
    const labels = this.#labels.get(component)
    if (labels === undefined) throw new Error(`there are no pods of ${component}`)
    return labels
  }

  #of(labels: Record<string, string>): Manifest[] {
    return this.#policies.filter(({ spec }) => selects(spec.podSelector, labels))
  }
}

function selects(
  { matchLabels = {}, matchExpressions = [] }: Manifest,
  labels: Record<string, string>,
): boolean {
  return (
    matches(labels, matchLabels) &&
    matchExpressions.every(({ key, values }: Manifest) => values.includes(labels[key]))
  )
}

function takesPort(ports: Manifest[] | undefined, port: number | string): boolean {
  return ports === undefined || ports.some((each) => each.port === port)
}

/** undefined: all peers. */
function names(peers: Manifest[] | undefined, labels: Record<string, string>): boolean {
  return peers === undefined || peers.some(({ podSelector }) => podSelector && selects(podSelector, labels))
}

function contains({ ipBlock }: Manifest, address: string): boolean {
  if (ipBlock === undefined) return false
  return isIn([ipBlock.cidr], address) && !isIn(ipBlock.except ?? [], address)
}

function isIn(blocks: string[], address: string): boolean {
  const list = new BlockList()
  const type = isIPv6(address) ? 'ipv6' : 'ipv4'
  for (const block of blocks) {
    const [base, bits] = block.split('/')
    if (isIPv6(base!) === isIPv6(address)) list.addSubnet(base!, Number(bits), type)
  }
  return list.check(address, type)
}
