import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { parse } from 'yaml'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { tempFolder } from '../support/temp-folders.ts'
import {
  chart,
  helm,
  helmOk,
  leastCluster,
  leastLocal,
  type Manifest,
  nameOf,
  podsOf,
  render,
  type Values,
  valuesFile,
} from './helm.ts'
import { ALL_APIS, everything, FURTHER_VARIABLES, matrix, namesLike } from './matrix.ts'
import { breaches } from './policies.ts'

describe('the chart as it is rendered', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  for (const { what, values, further } of matrix) {
    it(`passes helm lint, and no rule of policy is broken: ${what}`, async () => {
      await helmOk(cluster, ['lint', '--strict', chart], { values })
      const manifests = await render(cluster, values, { ...(further && { further }) })
      expect(podsOf(manifests).size).to.be.above(0)
      expect(breaches(manifests)).to.deep.equal([])
    })
  }

  it('makes names that Kubernetes takes, however long that of the release is', async () => {
    const release = `r${'x'.repeat(52)}`
    const text = await helmOk(cluster, ['template', release, chart], { values: [leastCluster] })
    const names = [...text.matchAll(/^ {2}name: "?(.+?)"?$/gm)].map(([, name]) => name!)
    expect(names.length).to.be.above(20)
    // Those of definitions and of roles are no labels.
    const labels = names.filter((name) => !/\.|-buffers$/.test(name))
    for (const name of labels) expect(name.length, name).to.be.at.most(63)
  })

  for (const [mode, least] of Object.entries({ cluster: everything, local: leastLocal })) {
    it(`takes no name for a number or a truth value: ${mode}`, async () => {
      const renderedAs = async (release: string, namespace: string, own: string, other: string) => {
        const values = [least, namesLike(own, other)]
        const rendered = await render(cluster, values, { release, namespace, further: ALL_APIS })
        // Of paths, too.
        return JSON.stringify(rendered)
          .replace(/"checksum.config":"\w+"/g, '"checksum":""')
          .replace(/-hosts-[0-9a-f]{7}"/g, '-hosts"')
      }
      const letters = await renderedAs('releasename', 'namespacename', 'ownname', 'othername')
      const odd = await renderedAs('123', '456', 'true', '1e5')
      expect(JSON.parse(odd)).to.deep.equal(
        JSON.parse(
          letters
            .replaceAll('releasename', '123')
            .replaceAll('namespacename', '456')
            .replaceAll('ownname', 'true')
            .replaceAll('othername', '1e5'),
        ),
      )
    })
  }

  it('makes roles and policies of the cluster that no other release makes', async () => {
    const roles = async (release: string, namespace: string) => {
      const { admissionPolicy } = everything
      const rendered = await render(cluster, [leastCluster, { admissionPolicy }], { release, namespace })
      const names = rendered.filter(({ kind }) => /^(Cluster|ValidatingAdm)/.test(kind)).map(nameOf)
      expect(names, `${release} in ${namespace}`).to.have.lengthOf(4)
      return names
    }
    const places = [
      ['penstock', 'prod-eu'],
      ['eu-penstock', 'prod'],
      ['penstock', 'prod'],
      [`r${'x'.repeat(52)}`, `n${'y'.repeat(62)}`],
    ] as const
    const names = (await Promise.all(places.map(([release, ns]) => roles(release, ns)))).flat()
    expect([...new Set(names)]).to.deep.equal(names)
    for (const name of names) expect(name.split('/')[1]!.length, name).to.be.at.most(63)
  })

  it('can be part of another chart, on a condition', async () => {
    const parent = tempFolder('parent')
    mkdirSync(join(parent, 'charts'))
    cpSync(chart, join(parent, 'charts', 'penstock'), { recursive: true })
    const dependency = { name: 'penstock', version: '>=0.0.0', condition: 'penstock.enabled' }
    const about = { apiVersion: 'v2', name: 'shop', version: '1.0.0', dependencies: [dependency] }
    writeFileSync(join(parent, 'Chart.yaml'), JSON.stringify(about))
    for (const enabled of [true, false]) {
      const values = [{ global: { region: 'eu' }, penstock: { ...leastCluster, enabled } }]
      const text = await helmOk(cluster, ['template', 'p', parent], { values })
      expect(text.includes('name: "p-penstock-ingress"')).to.equal(enabled)
    }
  })

  it('refuses a name of the release that no Service may have', async () => {
    for (const release of ['123', 'a.b']) {
      const { code, stderr } = await helm(cluster, ['template', release, chart], { values: [leastCluster] })
      expect(code).to.equal(1)
      expect(stderr).to.include(`fullnameOverride is required with the release name ${release}:`)
    }
  })

  it('has the definitions as they are checked in, which outlive the release', async () => {
    const folder = join(import.meta.dirname, '..', '..', 'crds')
    const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'))
    const rendered = (await render(cluster, [leastCluster])).filter(isDefinition)
    expect(rendered.length).to.equal(files.length)
    for (const file of files) {
      const definition = parse(readFileSync(join(folder, file), 'utf8'))
      definition.metadata.annotations = { 'helm.sh/resource-policy': 'keep' }
      expect(rendered).to.deep.include(definition)
    }
    const without = await render(cluster, [leastCluster, { crds: { install: false } }])
    expect(without.filter(isDefinition)).to.deep.equal([])
  })

  it('starts pods anew when what they read at their start changes, and only then', async () => {
    const checksums = async (further: Values) =>
      [...podsOf(await render(cluster, [leastCluster, further])).values()]
        .map(({ metadata }) => metadata.annotations?.['checksum/config'])
        .filter(Boolean)
    const before = await checksums({})
    expect(before).to.have.lengthOf(3)
    expect(await checksums({ ingress: { replicas: 7 } })).to.deep.equal(before)
    for (const config of [{ logLevel: 'debug' }, { catalog: { plans: [] } }, { env: { A: 'b' } }]) {
      expect(await checksums({ config })).not.to.include.members([before[0]])
    }
  })

  it('puts every pod where its values say, those of hooks too', async () => {
    const rendered = await render(cluster, [everything], { further: ALL_APIS })
    const pods = [...podsOf(rendered).entries()]
    expect(pods.map(([name]) => name).filter((name) => /migrate|test/.test(name))).to.have.length(2)
    for (const [name, { spec, metadata }] of pods) {
      const { nodeSelector, tolerations, affinity, priorityClassName } = spec
      const placement = { nodeSelector, tolerations, affinity, priorityClassName }
      const { podLabels, ...wanted } = everything.migrate
      expect(placement, name).to.deep.equal(wanted)
      expect(metadata.labels, name).to.include(podLabels)
    }
  })

  it('watches metrics only where the type of the monitor is', async () => {
    const kinds = async (further: string[], values: Values = {}) =>
      (await render(cluster, [leastCluster, values], { further })).map(({ kind }) => kind)
    expect(await kinds([])).not.to.include('ServiceMonitor')
    expect(await kinds(ALL_APIS)).to.include('ServiceMonitor')
    expect(await kinds(ALL_APIS, { serviceMonitor: { enabled: false } })).not.to.include('ServiceMonitor')
  })

  it('scales actors by lateness where metrics of pods are served, else by CPU; ingresses by CPU', async () => {
    const metrics = async (further: string[]) => {
      const manifests = await render(cluster, [valuesFile('production')], { further })
      const scalers = manifests.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')
      return Object.fromEntries(scalers.map(({ metadata, spec }) => [metadata.name, spec.metrics[0]]))
    }
    const cpu = {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } },
    }
    const lateness = {
      metric: { name: 'penstock_flush_lateness_p99' },
      target: { type: 'AverageValue', averageValue: '1000' },
    }
    expect(await metrics([])).to.deep.equal({ 'p-penstock-ingress': cpu, 'p-penstock-actor': cpu })
    expect(await metrics(ALL_APIS)).to.deep.equal({
      'p-penstock-ingress': cpu,
      'p-penstock-actor': { type: 'Pods', pods: lateness },
    })
  })

  it('keeps the secret of values out of what is no Secret', async () => {
    for (const each of await render(cluster, [everything], { further: ALL_APIS })) {
      if (each.kind === 'Secret') throw new Error('a cluster makes no Secret')
    }
    const local = await render(cluster, [leastLocal])
    const [secret, ...others] = local.filter(({ kind }) => kind === 'Secret')
    expect(others).to.deep.equal([])
    const pairs = Buffer.from(secret.data['owner-keys'], 'base64').toString()
    expect(pairs).to.match(/^local=svk_[0-9a-f]{48}$/)
    expect(JSON.stringify(local.filter((each) => each !== secret))).not.to.include(pairs.slice(-48))
  })

  it('says nothing of a test where no key is there for it', async () => {
    const names = async (values: Values) => (await render(cluster, [leastCluster, values])).map(nameOf)
    expect(await names({})).not.to.include('Pod/p-penstock-test')
    expect(await names({ ownerKeysSecret: { name: 'keys' } })).to.include('Pod/p-penstock-test')
  })
})

describe('values that are refused', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  const refused: readonly [Values, string][] = [
    ...[
      'app.kubernetes.io/name',
      'app.kubernetes.io/instance',
      'app.kubernetes.io/component',
      'penstock.dev/ops',
    ].flatMap((label) =>
      ['ingress', 'admin', 'actor', 'operator', 'local', 'migrate', 'test'].map(
        (component): [Values, string] => [
          { [component]: { podLabels: { [label]: 'mine' } } },
          `'/${component}/podLabels/${label.replace('/', '~1')}'`,
        ],
      ),
    ),
    [
      { actor: { podAnnotations: { 'checksum/config': 'mine' } } },
      "'/actor/podAnnotations/checksum~1config'",
    ],
    [{ commonLabels: { team: 'Platform Team' } }, "'/commonLabels/team'"],
    [{ actor: { podLabels: { team: 'x y' } } }, "'/actor/podLabels/team'"],
    [{ imagePullSecrets: [{ name: '' }] }, "'/imagePullSecrets/0/name'"],
    [{ image: { repository: 'registry.example.com/pen stock' } }, 'repository'],
    [{ image: { repository: ' penstock' } }, 'repository'],
    [{ image: { tag: '0.1 0' } }, 'tag'],
    [{ image: { tag: '-x' } }, 'tag'],
    [{ shards: 4 }, "additional properties 'shards' not allowed"],
    [{ config: { shard: 4 } }, "'/config': additional properties 'shard' not allowed"],
    [{ actor: { service: { type: 'ClusterIP' } } }, "'/actor': additional properties 'service' not allowed"],
    [{ ingress: { resources: { claims: [] } } }, "'/ingress/resources': additional properties"],
    [{ mode: 'both' }, "'/mode': value must be one of 'cluster', 'local'"],
    [{ fullnameOverride: 'Hooks' }, "'/fullnameOverride'"],
    [{ image: { digest: 'sha256:abc' } }, "'/image/digest'"],
    [{ image: { tag: 1.2 } }, "'/image/tag': got number, want string"],
    [{ nats: { url: 'http://nats' } }, "'/nats/url'"],
    [{ nats: { url: 'nats://a, nats://b' } }, "'/nats/url'"],
    [{ database: { url: 'mysql://db' } }, "'/database/url'"],
    [{ encryptionKeySecret: { name: 'Keys' } }, "'/encryptionKeySecret/name'"],
    [{ encryptionKeySecret: 'keys' }, "'/encryptionKeySecret': got string, want object"],
    [{ config: { shards: 0 } }, "'/config/shards': minimum: got 0, want 1"],
    [{ config: { shards: 1025 } }, "'/config/shards': maximum"],
    [{ config: { shards: '16' } }, "'/config/shards': got string, want integer"],
    [{ config: { replicas: 6 } }, "'/config/replicas': maximum"],
    [{ config: { sync: 'never' } }, "'/config/sync'"],
    [{ config: { logLevel: 'loud' } }, "'/config/logLevel': value must be one of"],
    [{ config: { allowDestinations: ['intranet'] } }, "'/config/allowDestinations/0'"],
    [{ config: { destinationPorts: [0] } }, "'/config/destinationPorts/0': minimum: got 0, want 1"],
    [{ config: { env: { 'A-B': '1' } } }, "'/config/env': additional properties 'A-B' not allowed"],
    [{ config: { env: { A: 1e16 } } }, "'/config/env/A': maximum"],
    [{ config: { env: { A: null, B: [] } } }, "'/config/env/B': got array"],
    [{ ingress: { replicas: 0 } }, "'/ingress/replicas': minimum: got 0, want 1"],
    [{ ingress: { service: { type: 'ExternalName' } } }, "'/ingress/service/type'"],
    [{ operator: { watchNamespaces: ['a', 'a'] } }, "'/operator/watchNamespaces'"],
    [{ operator: { watchNamespaces: ['*'] } }, "'/operator/watchNamespaces/0'"],
    [{ operator: { adminUrl: 'admin:80' } }, "'/operator/adminUrl'"],
    [{ terminationGracePeriodSeconds: 20 }, "'/terminationGracePeriodSeconds': minimum: got 20, want 25"],
    [{ networkPolicy: { nats: { ports: [] } } }, "'/networkPolicy/nats/ports': minItems"],
    [{ image: { tag: 'latest' } }, 'image.tag must name a version, not latest'],
    [
      { image: { registry: 'r.example.com', repository: 'r.example.com/team/penstock' } },
      'image.repository must not begin with image.registry',
    ],
    [{ admin: { pdb: { minAvailable: 2 } } }, 'admin.pdb.minAvailable must be below 2, the least'],
    [
      { ingress: { autoscaling: { enabled: true, minReplicas: 3 }, pdb: { minAvailable: 3 } } },
      'ingress.pdb.minAvailable must be below 3, the least',
    ],
    [{ nats: { url: '' } }, 'nats.url or nats.urlSecret.name is required'],
    [{ database: { url: '' } }, 'database.url or database.urlSecret.name is required'],
    [{ encryptionKeySecret: { name: '' } }, 'encryptionKeySecret.name is required'],
    [{ nats: { urlSecret: { name: 'nats' } } }, 'nats.url and nats.urlSecret exclude each other'],
    [{ database: { urlSecret: { name: 'db' } } }, 'database.url and database.urlSecret exclude each other'],
    [
      { config: { oidc: { issuer: 'https://id' } } },
      'config.oidc.issuer and config.oidc.audience are required together',
    ],
    [
      { stripe: { keySecret: { name: 'stripe' } } },
      'stripe.keySecret.name and stripe.returnUrl are required together',
    ],
    [
      { stripe: { webhookSecret: { name: 'stripe' } } },
      'stripe.keySecret.name is required with stripe.webhookSecret',
    ],
    [{ actor: { replicas: 17 } }, 'config.shards: 16 shards cannot occupy 17 actors'],
    [
      { config: { shards: 8 }, actor: { autoscaling: { enabled: true } } },
      '8 shards cannot occupy 16 actors',
    ],
    [
      { ingress: { autoscaling: { minReplicas: 13 } } },
      'ingress.autoscaling.minReplicas is above maxReplicas',
    ],
    ...(['ingressFrom', 'adminFrom'] as const).map((from): [Values, string] => [
      { mode: 'local', networkPolicy: { [from]: [{ podSelector: {} }] } },
      'networkPolicy.ingressFrom and networkPolicy.adminFrom are required together with mode: local',
    ]),
    [{ commonLabels: { 'app.kubernetes.io/name': 'x' } }, "'/commonLabels/app.kubernetes.io~1name'"],
    [
      { commonLabels: { 'app.kubernetes.io/managed-by': 'x' } },
      "'/commonLabels/app.kubernetes.io~1managed-by'",
    ],
    [{ nameOverride: 'A b' }, "'/nameOverride'"],
    [{ image: { registry: 'https://registry' } }, "'/image/registry'"],
    [{ ingress: { env: [{ value: 'x' }] } }, "'/ingress/env/0': missing property 'name'"],
    [{ ingress: { env: [{ name: 'A', value: 1 }] } }, "'/ingress/env/0/value': got number, want string"],
    [{ ingress: { pdb: { maxUnavailable: 'one' } } }, "'/ingress/pdb/maxUnavailable'"],
    [{ ingress: { service: { loadbalancerClass: 'x' } } }, "'/ingress/service': additional properties"],
    [{ ingress: { service: { nodePort: 30080 } } }, 'ingress.service.nodePort needs the type NodePort or'],
    [
      { admin: { service: { type: 'NodePort', loadBalancerClass: 'x' } } },
      'admin.service.loadBalancerClass needs the type LoadBalancer',
    ],
    [{ operator: { verifySeconds: 0 } }, "'/operator/verifySeconds'"],
    [
      { operator: { serviceAccount: { create: false } } },
      'operator.serviceAccount.name is required with create',
    ],
    [
      { ingress: { serviceAccount: { name: 'app' } }, actor: { serviceAccount: { name: 'app' } } },
      'actor.serviceAccount.create must be off: ingress.serviceAccount makes app',
    ],
    [
      { admin: { expose: { httpRoute: { enabled: true } } } },
      'admin.expose.httpRoute.parentRefs is required: it names the Gateway',
    ],
    [{ admin: { expose: { ingress: { hosts: ['https://a'] } } } }, "'/admin/expose/ingress/hosts/0'"],
    [{ actor: { expose: { ingress: { enabled: true } } } }, "'/actor': additional properties 'expose'"],
    [
      { operator: { verifySeconds: 9 }, config: { env: { PENSTOCK_VERIFY_SECONDS: '8' } } },
      'config.env.PENSTOCK_VERIFY_SECONDS is not yours to set: the chart does, by operator.verifySeconds',
    ],
    [{ mode: 'local', nats: { url: '' } }, 'config.replicas must be 1 with the one NATS of mode: local'],
  ]
  for (const [values, why] of refused) {
    it(`${JSON.stringify(values)}: ${why}`, async () => {
      const { code, stderr } = await helm(cluster, ['template', 'p', chart], {
        values: [leastCluster, values],
      })
      expect(code).to.equal(1)
      expect(stderr).to.include(why)
    })
  }

  it('are refused as further variables when the chart sets those itself', async () => {
    const rows = [
      ...matrix,
      { what: 'passwords', values: [leastCluster, { database: { passwordSecret: { name: 'db' } } }] },
    ]
    const rendered = (await Promise.all(rows.map(({ values }) => render(cluster, values)))).flat()
    const set = new Set([...variablesOf(rendered), 'PENSTOCK_PORT', 'PENSTOCK_OPS_PORT'])
    for (const name of FURTHER_VARIABLES) set.delete(name)
    // The chart sets it only where the values say so.
    set.delete('PENSTOCK_VERIFY_SECONDS')
    expect(set.size).to.be.above(25)
    for (const name of set) {
      const { code, stderr } = await helm(cluster, ['template', 'p', chart], {
        values: [leastCluster, { config: { env: { OTHER: 'x', [name]: 'y' } } }],
      })
      expect(code, name).to.equal(1)
      expect(stderr).to.include(`config.env.${name} is not yours to set: the chart does, `)
    }
  })

  it('are refused as variables of one program, by its name', async () => {
    for (const role of ['ingress', 'admin', 'actor', 'operator', 'migrate', 'test', 'local']) {
      for (const [env, why] of [
        [[{ name: 'PENSTOCK_SHARDS', value: '1' }], 'PENSTOCK_SHARDS is not yours to set: the chart does'],
        [[{ name: 'A' }, { name: 'B' }, { name: 'A' }], 'A is there twice'],
      ] as const) {
        const values = [leastCluster, { [role]: { env } }]
        const { code, stderr } = await helm(cluster, ['template', 'p', chart], { values })
        expect(code, role).to.equal(1)
        expect(stderr).to.include(`${role}.env: ${why}`)
      }
    }
  })

  it('are refused with the default values alone: what to deliver over must be said', async () => {
    const { code, stderr } = await helm(cluster, ['template', 'p', chart])
    expect(code).to.equal(1)
    expect(stderr).to.include('nats.url or nats.urlSecret.name is required')
  })
})

function isDefinition({ kind }: Manifest): boolean {
  return kind === 'CustomResourceDefinition'
}

/** Of the programs: those of the ConfigMap and those of pods. */
function variablesOf(manifests: readonly Manifest[]): string[] {
  const config = manifests.filter((each) => nameOf(each).endsWith('-config'))
  const pods = [...podsOf(manifests.filter(({ kind }) => kind !== 'Pod')).values()]
  const env = pods.flatMap(({ spec }) => spec.containers[0].env ?? [])
  return [...config.flatMap(({ data }) => Object.keys(data)), ...env.map(({ name }: Manifest) => name)]
}
