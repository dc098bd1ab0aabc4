/** The policy that says who may name which hosts, as a real API server judges by it. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { API_VERSION, GROUP, KIND, PLURAL } from '../../operator/resource.ts'
import { type Kube, kubectl, kubectlOk, start, stopKube } from '../kube/kube.ts'
import { defineBuffers } from '../operator/crd/site.ts'
import { eventually } from '../support/eventually.ts'
import { leastCluster, type Manifest, render } from './helm.ts'
import { tricks } from './host-tricks.ts'

const WAIT = { timeoutMs: 60_000, everyMs: 100 }
const NAMESPACES: Record<string, Record<string, string>> = {
  shop: { team: 'shop' },
  both: { team: 'shop', 'example.com/stage': 'test' },
  free: { team: 'ops' },
  bare: {},
}
const rules = [
  {
    name: 'shop hosts',
    namespaceSelector: { matchLabels: { team: 'shop' } },
    allowedHosts: [
      'Hooks.Example.com',
      '*.shop.example',
      'one.example:8443',
      '*.ports.example:81',
      '[fd00::1]',
      '127.0.0.1',
    ],
  },
  {
    namespaceSelector: {
      matchExpressions: [{ key: 'example.com/stage', operator: 'In', values: ['test', 'dev'] }],
    },
    allowedHosts: ['stage.example', 'xn--bcher-kva.example'],
  },
  {
    name: 'everything',
    namespaceSelector: {
      matchLabels: { team: 'ops' },
      matchExpressions: [
        { key: 'example.com/stage', operator: 'DoesNotExist' },
        { key: 'team', operator: 'NotIn', values: ['shop'] },
        { key: 'team', operator: 'Exists' },
      ],
    },
    allowedHosts: ['*'],
  },
]

describe('the policy of hosts', function () {
  this.timeout(180_000)
  // A cluster of its own: the policy holds for all Buffers of it.
  let cluster: Kube
  before(async function () {
    const started = await start({ parts: 'controller-manager' })
    if (started === undefined) return this.skip()
    cluster = started
    await defineBuffers(cluster)
    for (const [name, labels] of Object.entries(NAMESPACES))
      await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
    await apply(buffer('https://before.example/', 'stored'), 'shop')
    await enforce(refuses)
  })

  after(async () => {
    if (cluster) await stopKube(cluster)
  })

  const apply = (object: Manifest, within = 'default') =>
    kubectlOk(cluster, ['-n', within, 'apply', '-f', '-'], JSON.stringify(object))

  /** Applies the policy of the chart, and waits until the API server judges by it. */
  async function enforce(
    until: () => Promise<boolean>,
    more: object = {},
    operator: object = {},
  ): Promise<void> {
    const values = { ...leastCluster, operator, admissionPolicy: { enabled: true, rules, ...more } }
    const made = (await render(cluster, [values])).filter(({ kind }) =>
      kind.startsWith('ValidatingAdmission'),
    )
    expect(made).to.have.length(2)
    await apply({ apiVersion: 'v1', kind: 'List', items: made })
    await eventually(until, WAIT)
  }

  const refuses = async () => (await judge('https://none.example/', 'shop')).includes('is not allowed')

  /** What the API server says against a Buffer of the URL; empty: nothing. */
  async function judge(url: string, within: string): Promise<string> {
    const args = ['-n', within, 'create', '--dry-run=server', '-f', '-']
    const { code, stderr } = await kubectl(cluster, args, JSON.stringify(buffer(url)))
    expect(code === 0 ? stderr : '').to.equal('')
    return stderr
  }

  it('is well-typed', async () => {
    const found = await eventually(async () => {
      const { items } = JSON.parse(
        await kubectlOk(cluster, ['get', 'validatingadmissionpolicies', '-o', 'json']),
      )
      return items[0].status?.typeChecking && items[0]
    }, WAIT)
    expect(found.status.typeChecking).to.deep.equal({})
    expect(found.metadata.name).to.match(/^p-penstock-hosts-[0-9a-f]{7}$/)
  })

  const allowed: [where: string, url: string][] = [
    ['shop', 'https://hooks.example.com'],
    ['shop', 'HTTP://HOOKS.example.COM:8080/a?b=https://other.example#c'],
    ['shop', 'https://hooks.example.com./'],
    ['shop', 'https://hooks.example.com:/'],
    ['shop', 'https://a.shop.example/'],
    ['shop', 'https://a.b-c.SHOP.example:99/'],
    ['shop', 'https://one.example:8443/'],
    ['shop', 'https://one.example:08443/'],
    ['shop', 'http://a.ports.example:81/'],
    ['shop', 'https://[FD00::1]:444/'],
    ['shop', 'http://127.0.0.1/'],
    ['both', 'https://hooks.example.com/'],
    ['both', 'https://stage.example/'],
    ['both', 'https://xn--bcher-kva.example/'],
    ['free', 'https://anything.example:1/'],
    ['free', 'https://bücher.example/'],
  ]
  for (const [where, url] of allowed)
    it(`lets ${where} name ${url}`, async () => {
      expect(await judge(url, where)).to.equal('')
    })

  const named: [where: string, url: string, place: string, why: string][] = [
    ['shop', 'https://evil.example/', 'evil.example:443', 'by the rules that select it: shop hosts'],
    ['shop', 'https://shop.example/', 'shop.example:443', 'by the rules that select it: shop hosts'],
    ['shop', 'https://xshop.example/', 'xshop.example:443', 'by the rules that select it: shop hosts'],
    [
      'shop',
      'https://a.shop.example.evil/',
      'a.shop.example.evil:443',
      'by the rules that select it: shop hosts',
    ],
    ['shop', 'https://hooks.example.com.evil.example/', 'hooks.example.com.evil.example:443', 'by the rules'],
    ['shop', 'http://one.example/', 'one.example:80', 'by the rules that select it: shop hosts'],
    ['shop', 'https://one.example:443/', 'one.example:443', 'by the rules that select it: shop hosts'],
    ['shop', 'https://a.ports.example:8181/', 'a.ports.example:8181', 'by the rules'],
    ['shop', 'https://[fd00::2]/', '[fd00::2]:443', 'by the rules'],
    ['shop', 'http://2130706433/', '2130706433:80', 'by the rules'],
    ['shop', 'https://evil.example/hooks.example.com', 'evil.example:443', 'by the rules'],
    ['shop', 'https://evil.example?hooks.example.com', 'evil.example:443', 'by the rules'],
    ['shop', 'https://stage.example/', 'stage.example:443', 'by the rules that select it: shop hosts'],
    [
      'both',
      'https://evil.example/',
      'evil.example:443',
      'by the rules that select it: shop hosts, rules[1]',
    ],
    ['bare', 'https://hooks.example.com/', 'hooks.example.com:443', 'no rule selects this namespace'],
  ]
  for (const [where, url, place, why] of named)
    it(`does not let ${where} name ${url}, and says what of it and why`, async () => {
      const told = await judge(url, where)
      expect(told).to.include(`spec.delivery.url: the host ${place} is not allowed in the namespace ${where}`)
      expect(told).to.include(why)
    })

  it('takes no host that is not written in ASCII, and says so', async () => {
    for (const url of [
      'https://hooks。example.com/',
      'https://bücher.example/',
      'https://ｈooks.example.com/',
    ])
      expect(await judge(url, 'both'), url).to.include('spec.delivery.url must name its host plainly')
  })

  it('lets everything else of a stored Buffer be changed, and then deleted, but its host not to another', async () => {
    const patch = (body: object) =>
      kubectl(cluster, [
        '-n',
        'shop',
        'patch',
        'buffer',
        'stored',
        '--type',
        'merge',
        '-p',
        JSON.stringify(body),
      ])
    expect(
      (await patch({ spec: { displayName: 'new' }, metadata: { finalizers: ['example.com/a'] } })).code,
    ).to.equal(0)
    expect((await patch({ spec: { delivery: { method: 'PUT' } } })).code).to.equal(0)
    const moved = await patch({ spec: { delivery: { url: 'https://evil.example/' } } })
    expect(moved.stderr).to.include('the host evil.example:443 is not allowed in the namespace shop')
    expect((await patch({ spec: { delivery: { url: 'https://hooks.example.com/' } } })).code).to.equal(0)
    expect((await patch({ spec: { delivery: { url: 'https://before.example/' } } })).code).to.equal(1)
    await kubectlOk(cluster, ['-n', 'shop', 'delete', 'buffer', 'stored', '--wait=false'])
    expect((await patch({ metadata: { finalizers: null } })).code).to.equal(0)
  })

  it('warns instead of refusing, when it is told so', async () => {
    const warns = async () => {
      const args = ['-n', 'shop', 'create', '--dry-run=server', '-f', '-']
      const { code, stderr } = await kubectl(cluster, args, JSON.stringify(buffer('https://evil.example/')))
      return code === 0 && /^Warning: .*the host evil\.example:443 is not allowed/.test(stderr)
    }
    await enforce(warns, { validationActions: ['Warn'] })
    await enforce(refuses)
  })

  it('holds in the namespaces that the operator watches, and in no other', async () => {
    const passes = async () => (await judge('https://evil.example/', 'shop')) === ''
    await enforce(passes, {}, { watchNamespaces: ['bare'] })
    expect(await judge('https://evil.example/', 'bare')).to.include('no rule selects this namespace')
    await enforce(refuses)
  })

  it('allows no URL that leads elsewhere in the eyes of the service, whatever the definition lets pass', async () => {
    await apply(permissive)
    // Nothing of a definition tells that its schema is in use.
    await eventually(
      async () => (await judge('https://hooks.example.com@evil.example/', 'free')) === '',
      WAIT,
    )
    const urls = tricks()
    const accepted = await acceptedOf(urls)
    expect(accepted.length).to.be.within(20, urls.length / 2)
    for (const url of accepted.filter((each) => URL.canParse(each))) {
      const host = new URL(url).hostname.replace(/\.+$/, '')
      expect(
        /^(hooks\.example\.com|.+\.shop\.example)$/.test(host),
        `${JSON.stringify(url)}: ${host}`,
      ).to.equal(true)
    }
  })

  /** Those of the URLs that the API server takes in the namespace shop. */
  async function acceptedOf(urls: readonly string[]): Promise<string[]> {
    const items = urls.map((url, n) => buffer(url, `trick-${n}`))
    const args = ['-n', 'shop', 'create', '--dry-run=server', '-f', '-']
    const { stdout, stderr } = await kubectl(
      cluster,
      args,
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
    )
    const names = new Set([...stdout.matchAll(/\/(trick-\d+) created/g)].map(([, name]) => name))
    const refused = stderr.match(/ denied request: spec\.delivery\.url/g) ?? []
    expect(names.size + refused.length, stderr.slice(0, 2_000)).to.equal(urls.length)
    return urls.filter((_, n) => names.has(`trick-${n}`))
  }
})

function buffer(url: string, name = 'orders'): Manifest {
  const spec = {
    projectId: 'shop',
    groupKey: { mode: 'jsonpath', path: '$.customer' },
    delivery: { url },
    credentialsRef: { name: 'key' },
  }
  return { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec }
}

/** A definition that judges nothing. */
const permissive = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${PLURAL}.${GROUP}` },
  spec: {
    group: GROUP,
    names: { plural: PLURAL, kind: KIND, singular: 'buffer', listKind: 'BufferList' },
    scope: 'Namespaced',
    versions: [
      {
        name: API_VERSION.split('/')[1],
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}
