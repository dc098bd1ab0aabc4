/** What programs read in the pods of the chart is what they understand. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Config, type ProcessRole, readConfig } from '../../cmd/config/config.ts'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import {
  leastCluster,
  leastLocal,
  type Manifest,
  nameOf,
  podsOf,
  render,
  type Values,
  valuesFile,
} from './helm.ts'
import { ALL_APIS, everything, matrix } from './matrix.ts'

/** As the Secrets would hold them, by variable. */
const secrets: Record<string, string> = {
  PENSTOCK_NATS_URL: 'nats://nats:4222',
  PENSTOCK_DATABASE_URL: 'postgresql://app:pw@db/app',
  PENSTOCK_SECRET_KEY: randomBytes(32).toString('base64'),
  PENSTOCK_OWNER_KEYS: `acme=svk_${'0'.repeat(48)}`,
  PENSTOCK_STRIPE_KEY: 'sk_test_0123456789',
  PENSTOCK_STRIPE_WEBHOOK_SECRETS: 'whsec_0123456789',
  NATS_PASSWORD: 'n4ts',
  DATABASE_PASSWORD: 'p0stgres',
}

describe('the variables of pods', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  const configs = async (values: readonly (string | Values)[], further: readonly string[] = []) =>
    configsOf(await render(cluster, values, { further }))

  for (const { what, values, further } of matrix) {
    it(`are understood by every program: ${what}`, async () => {
      const read = await configs(values, further)
      expect(read.size).to.be.above(0)
      for (const { host, role } of read.values())
        if (role !== 'migrate') expect(host, role).to.equal('0.0.0.0')
    })
  }

  it('tell each role of a cluster what it works with', async () => {
    const read = await configs([everything], ALL_APIS)
    expect([...read.keys()]).to.have.members(['ingress', 'admin', 'actor', 'operator', 'migrate'])
    for (const role of ['ingress', 'admin', 'actor']) {
      expect(read.get(role), role).to.deep.include({
        natsUrls: ['tls://app:n4ts@nats-0:4222', 'tls://nats-1:4222'],
        natsCredsFile: '/etc/penstock/nats/app.creds',
        databaseUrl: secrets.PENSTOCK_DATABASE_URL,
        shards: 16,
        replicas: 3,
        subjects: 'shard',
        local: false,
        initialCredits: 0,
        destinationPorts: [443, 8443],
        dnsServers: ['10.96.0.11', 'fd00:1::b'],
        oidc: {
          issuer: 'https://id.example.com',
          audience: 'penstock',
          jwksUrl: 'https://id.example.com/keys',
        },
        catalogFile: '/etc/penstock/catalog/catalog.json',
        auditDays: 400,
        logLevel: 'debug',
      })
      expect(read.get(role)!.allowDestinations).to.have.lengthOf(2)
      expect(read.get(role)!.secretKeys).to.have.lengthOf(1)
    }
    expect(read.get('admin')!.ownerKeys).to.have.lengthOf(1)
    expect(read.get('admin')!.stripe).to.deep.equal({
      key: secrets.PENSTOCK_STRIPE_KEY,
      webhookSecrets: [secrets.PENSTOCK_STRIPE_WEBHOOK_SECRETS],
      returnUrl: 'https://app.example.com/billing',
      origin: undefined,
    })
    expect(read.get('ingress')!.stripe).to.equal(undefined)
    expect(read.get('actor')!.stripe).to.equal(undefined)
    expect(read.get('ingress')!.ownerKeys).to.equal(undefined)
    expect(read.get('actor')!.ownerKeys).to.equal(undefined)
    expect(read.get('operator')!.operator).to.deep.include({
      adminUrl: 'https://admin.example.com',
      adminCaFile: '/etc/penstock/admin/admin.crt',
      watchNamespaces: ['ns'],
      leaseNamespace: 'ns',
      leaseName: 'hooks-operator',
    })
  })

  it('let the one pod of a local instance bring its servers along', async () => {
    const read = (await configs([valuesFile('local')])).get('penstock')!
    expect(read).to.deep.include({ natsUrls: undefined, databaseUrl: undefined, secretKeys: undefined })
    expect(read).to.deep.include({
      local: true,
      dataDir: '/data/penstock',
      shards: 4,
      replicas: 1,
      sync: 'always',
    })
    expect(read.ownerKeys).to.have.lengthOf(1)
    expect(read.allowDestinations).to.have.lengthOf(2)
  })

  it('grant a new customer credits on the local instance alone, unless the values say how many', async () => {
    const granted = async (...values: (string | Values)[]) => {
      const read = [...(await configs(values)).values()].filter(({ role }) => /admin|penstock/.test(role))
      expect(read).to.have.lengthOf(1)
      return read[0]!.initialCredits
    }
    const few = { config: { initialCredits: 7 } }
    expect([await granted(leastLocal), await granted(valuesFile('local'))]).to.deep.equal([100_000, 100_000])
    expect([await granted(leastCluster), await granted(valuesFile('production'))]).to.deep.equal([0, 0])
    expect([await granted(leastLocal, few), await granted(leastCluster, few)]).to.deep.equal([7, 7])
    expect(await granted(leastLocal, { config: { initialCredits: 0 } })).to.equal(0)
  })

  it('limit what one customer may ask for where the values say so', async () => {
    const limitsOf = async (values: Values) => {
      const [read] = [...(await configs([leastCluster, values])).values()].filter(
        ({ role }) => role === 'admin',
      )
      const { keyRequestsPerSecond, testsPerMinute, signUpsPerMinute } = read!
      const { maxCustomers, maxProjects, maxBuffers } = read!
      return [keyRequestsPerSecond, testsPerMinute, signUpsPerMinute, maxCustomers, maxProjects, maxBuffers]
    }
    expect(await limitsOf({}), 'the defaults').to.deep.equal([10, 30, 60, 100, 100, 1_000])
    const limits = {
      keyRequestsPerSecond: 1,
      testsPerMinute: 2,
      signUpsPerMinute: 3,
      maxCustomers: 4,
      maxProjects: 5,
      maxBuffers: 0,
    }
    expect(await limitsOf({ config: { limits } })).to.deep.equal([1, 2, 3, 4, 5, 0])
  })

  it('are further ones as they were written, of every program, numbers among them', async () => {
    const env = { MILLIONS: 12_345_678, LEAST: -9_007_199_254_740_991, PART: 0.5, YES: true, TEXT: '1e6' }
    const manifests = await render(cluster, [leastCluster, { config: { env } }])
    const pods = [...podsOf(manifests).values()]
    expect(pods).to.have.lengthOf(5)
    for (const { spec } of pods) {
      expect(environmentOf(spec.containers[0], manifests)).to.include({
        MILLIONS: '12345678',
        LEAST: '-9007199254740991',
        PART: '0.5',
        YES: 'true',
        TEXT: '1e6',
      })
    }
  })

  it('lead the operator to the admin API of its release, at the port of the service', async () => {
    const url = async (values: readonly (string | Values)[]) =>
      (await configs(values)).get('operator')!.operator.adminUrl
    const noAddress = { operator: { adminUrl: '' } }
    expect(await url([leastLocal])).to.equal('http://p-penstock-local.ns.svc')
    expect(await url([everything, noAddress])).to.equal('http://hooks-admin.ns.svc:8080')
  })

  it('name files that are mounted', async () => {
    for (const [name, pod] of podsOf(await render(cluster, [everything]))) {
      const { env = [], volumeMounts = [] } = pod.spec.containers[0]
      const volumes = (pod.spec.volumes ?? []).map((volume: Manifest) => volume.name)
      expect(volumes, name).to.have.members(volumeMounts.map((mount: Manifest) => mount.name))
      const folders = volumeMounts.map((mount: Manifest) => `${mount.mountPath}/`)
      const files = env.filter(({ value = '' }: Manifest) => value.startsWith('/etc/'))
      for (const { value } of files)
        expect(
          folders.some((folder: string) => value.startsWith(folder)),
          value,
        ).to.equal(true)
    }
  })

  it('are all documented', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/reference/configuration.md'), 'utf8')
    for (const { what, values, further = [] } of matrix) {
      const text = JSON.stringify(await render(cluster, values, { further }))
      for (const name of text.match(/PENSTOCK_[A-Z_]+/g)!) expect(page, what).to.include(`\`${name}\``)
    }
  })
})

/** By program; whatever it would refuse to start with is thrown. */
function configsOf(manifests: readonly Manifest[]): Map<string, Config> {
  const read = new Map<string, Config>()
  for (const pod of podsOf(manifests).values()) {
    const [container] = pod.spec.containers
    if (container.args.length !== 1 || container.command) continue
    read.set(
      container.args[0],
      readConfig(environmentOf(container, manifests), container.args[0] as ProcessRole),
    )
  }
  return read
}

/** As the kubelet makes it: ConfigMaps first, then variables, which may name those above them. */
function environmentOf(
  { envFrom = [], env = [] }: Manifest,
  all: readonly Manifest[],
): Record<string, string> {
  const made: Record<string, string> = {}
  // What is not of the release fills in nothing here.
  for (const { configMapRef } of envFrom.filter((each: Manifest) =>
    /-config$/.test(each.configMapRef?.name),
  )) {
    const map = all.find((each) => nameOf(each) === `ConfigMap/${configMapRef.name}`)
    if (map === undefined) throw new Error(`there is no ConfigMap ${configMapRef.name}`)
    Object.assign(made, map.data)
  }
  for (const { name, value, valueFrom } of env) {
    const found = valueFrom ? secretOf(name, valueFrom.secretKeyRef, all) : value
    made[name] = found.replace(/\$\((\w+)\)/g, (reference: string, other: string) => made[other] ?? reference)
  }
  return made
}

function secretOf(
  variable: string,
  { name, key }: { name: string; key: string },
  all: readonly Manifest[],
): string {
  const own = all.find((each) => nameOf(each) === `Secret/${name}`)
  return own ? Buffer.from(own.data[key], 'base64').toString() : secrets[variable]!
}
