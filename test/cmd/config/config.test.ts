import { expect } from 'chai'
import { describe, it } from 'mocha'

import {
  ConfigError,
  defaultProcesses,
  defaultShards,
  describeEnvironment,
  readConfig,
} from '../../../cmd/config/config.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
const OWNER_KEY = `svk_${'0a'.repeat(24)}`
const CLUSTER = {
  PENSTOCK_NATS_URL: 'nats://n1:4222,tls://user:pass@n2:4222',
  PENSTOCK_DATABASE_URL: 'postgres://u:p@db/penstock',
  PENSTOCK_SECRET_KEY: KEY,
}

describe('the configuration', () => {
  it('of a bare machine needs nothing', () => {
    const config = readConfig({ PATH: '/bin', OTEL_SERVICE_NAME: 'x' }, 'penstock')
    expect(config).to.deep.include({
      host: '127.0.0.1',
      port: 8080,
      opsPort: 9464,
      dataDir: '.penstock',
      natsUrls: undefined,
      databaseUrl: undefined,
      shards: undefined,
      replicas: 1,
      subjects: 'group',
      processes: defaultProcesses(),
      sync: 'always',
      ownerKeys: undefined,
      secretKeys: undefined,
      local: true,
      initialCredits: 100_000,
      oidc: undefined,
      maxBodyBytes: 1_000_000,
      maxBodiesBytes: 64_000_000,
      maxConnections: 10_000,
      keyRequestsPerSecond: 0,
      testsPerMinute: 0,
      signUpsPerMinute: 0,
      maxCustomers: 0,
      maxProjects: 0,
      maxBuffers: 0,
      deadLetters: {},
      auditDays: 90,
      logLevel: 'info',
    })
    expect(config.allowDestinations.map(({ prefix }) => prefix)).to.deep.equal([8, 128])
  })

  it('of a role of a cluster is no local instance', () => {
    const config = readConfig(CLUSTER, 'actor')
    expect(config).to.deep.include({ local: false, initialCredits: 0, allowDestinations: [] })
    expect(config).to.include({ keyRequestsPerSecond: 10, testsPerMinute: 30, signUpsPerMinute: 60 })
    expect(config).to.include({ maxCustomers: 100, maxProjects: 100, maxBuffers: 1_000 })
    expect(config.natsUrls).to.deep.equal(['nats://n1:4222', 'tls://user:pass@n2:4222'])
    expect(config.secretKeys).to.have.length(1)
  })

  it('of the operator needs the address of the management API, and nothing of the servers', () => {
    expect(readConfig({ PENSTOCK_ADMIN_URL: 'http://admin:8080' }, 'operator').operator).to.deep.equal({
      adminUrl: 'http://admin:8080',
      adminCaFile: undefined,
      watchNamespaces: undefined,
      leaseNamespace: undefined,
      leaseName: 'penstock-operator',
      verifySeconds: 300,
    })
  })

  it('of a whole cluster on this machine is local, on three replicas, with ports and data of its own', () => {
    expect(readConfig({}, 'cluster')).to.deep.include({
      local: true,
      replicas: 3,
      port: 0,
      opsPort: 0,
      dataDir: '.penstock-cluster',
      natsUrls: undefined,
      databaseUrl: undefined,
      secretKeys: undefined,
    })
    expect(() => readConfig({ PENSTOCK_LOCAL: 'false' }, 'cluster')).to.throw(
      ConfigError,
      'PENSTOCK_SECRET_KEY: is required outside the local instance',
    )
  })

  it('takes every value that is given', () => {
    const config = readConfig(
      {
        ...CLUSTER,
        PENSTOCK_HOST: '::1',
        PENSTOCK_PORT: '0',
        PENSTOCK_OPS_PORT: '65535',
        PENSTOCK_DATA_DIR: '/data',
        PENSTOCK_NATS_CREDS: '/creds',
        PENSTOCK_SHARDS: '16',
        PENSTOCK_REPLICAS: '3',
        PENSTOCK_SUBJECTS: 'shard',
        PENSTOCK_PROCESSES: '4',
        PENSTOCK_CATALOG: 'plans.json',
        PENSTOCK_SYNC: '10s',
        PENSTOCK_OWNER_KEYS: `acme=${OWNER_KEY}, other=${OWNER_KEY}`,
        PENSTOCK_LOCAL: 'false',
        PENSTOCK_ALLOW_DESTINATIONS: '10.0.0.0/8,fd00::/8',
        PENSTOCK_DESTINATION_PORTS: '443, 8443',
        PENSTOCK_DNS_SERVERS: '10.0.0.10, fd00::10, 10.0.0.11:5353, [fd00::11]:5353',
        PENSTOCK_INITIAL_CREDITS: '5',
        PENSTOCK_OIDC_ISSUER: 'https://id.example',
        PENSTOCK_OIDC_AUDIENCE: 'penstock',
        PENSTOCK_OIDC_JWKS_URL: 'https://id.example/keys',
        PENSTOCK_MAX_BODY_BYTES: '2000',
        PENSTOCK_MAX_BODIES_BYTES: '5000000',
        PENSTOCK_MAX_CONNECTIONS: '500',
        PENSTOCK_KEY_REQUESTS_PER_SECOND: '5',
        PENSTOCK_TESTS_PER_MINUTE: '6',
        PENSTOCK_SIGN_UPS_PER_MINUTE: '7',
        PENSTOCK_MAX_CUSTOMERS: '8',
        PENSTOCK_MAX_PROJECTS: '9',
        PENSTOCK_MAX_BUFFERS: '10',
        PENSTOCK_DLQ_RETENTION_DAYS: '30',
        PENSTOCK_DLQ_QUOTA: '10000',
        PENSTOCK_AUDIT_DAYS: '365',
        NATS_SERVER_BIN: '/bin/nats-server',
        PENSTOCK_ADMIN_URL: 'https://admin.example/base',
        PENSTOCK_ADMIN_CA_FILE: '/ca.crt',
        PENSTOCK_WATCH_NAMESPACES: 'one, two',
        PENSTOCK_LEASE_NAMESPACE: 'penstock',
        PENSTOCK_LEASE_NAME: 'operator.v1',
        PENSTOCK_VERIFY_SECONDS: '60',
        PENSTOCK_LOG_LEVEL: 'warn',
      },
      'penstock',
    )
    expect(config).to.deep.include({
      host: '::1',
      port: 0,
      opsPort: 65_535,
      dataDir: '/data',
      natsCredsFile: '/creds',
      shards: 16,
      replicas: 3,
      subjects: 'shard',
      processes: 4,
      catalogFile: 'plans.json',
      sync: '10s',
      local: false,
      destinationPorts: [443, 8_443],
      dnsServers: ['10.0.0.10', 'fd00::10', '10.0.0.11:5353', '[fd00::11]:5353'],
      initialCredits: 5,
      maxBodyBytes: 2_000,
      maxBodiesBytes: 5_000_000,
      maxConnections: 500,
      keyRequestsPerSecond: 5,
      testsPerMinute: 6,
      signUpsPerMinute: 7,
      maxCustomers: 8,
      maxProjects: 9,
      maxBuffers: 10,
      deadLetters: { retentionDays: 30, quota: 10_000 },
      auditDays: 365,
      natsServerBin: '/bin/nats-server',
      operator: {
        adminUrl: 'https://admin.example/base',
        adminCaFile: '/ca.crt',
        watchNamespaces: ['one', 'two'],
        leaseNamespace: 'penstock',
        leaseName: 'operator.v1',
        verifySeconds: 60,
      },
      logLevel: 'warn',
      oidc: { issuer: 'https://id.example', audience: 'penstock', jwksUrl: 'https://id.example/keys' },
      ownerKeys: [
        { customerId: 'acme', secret: OWNER_KEY },
        { customerId: 'other', secret: OWNER_KEY },
      ],
    })
    expect(config.allowDestinations).to.have.length(2)
  })

  it('counts an empty variable as unset', () => {
    expect(readConfig({ PENSTOCK_PORT: '', PENSTOCK_NATS_URL: '' }, 'penstock').port).to.equal(8080)
  })

  it('refuses a name that nobody knows', () => {
    expect(problem({ PENSTOCK_PRT: '1' })).to.equal('PENSTOCK_PRT: no such variable')
  })

  const bad: Record<string, string[]> = {
    PENSTOCK_PORT: ['65536', '-1', 'tcp://10.0.0.1:80', '80.5', ' 80'],
    PENSTOCK_OPS_PORT: ['x'],
    PENSTOCK_NATS_URL: ['http://n1', 'n1:4222', 'nats://n1,'],
    PENSTOCK_DATABASE_URL: ['mysql://db', 'db'],
    PENSTOCK_SHARDS: ['0', '1025', 'many'],
    PENSTOCK_REPLICAS: ['0', '6'],
    PENSTOCK_SUBJECTS: ['groups', 'Group'],
    PENSTOCK_PROCESSES: ['0'],
    PENSTOCK_SYNC: ['never', '0s', '10', 'always; store_dir: /', '61m', '2h'],
    PENSTOCK_OWNER_KEYS: ['acme', `acme=svk_${'0'.repeat(47)}`, `a/b=${OWNER_KEY}`, `=${OWNER_KEY}`],
    PENSTOCK_SECRET_KEY: ['short', `a:${KEY},a:${KEY}`],
    PENSTOCK_LOCAL: ['yes', 'TRUE', '1'],
    PENSTOCK_ALLOW_DESTINATIONS: ['10.0.0.0/33', 'example.org'],
    PENSTOCK_DESTINATION_PORTS: ['0', '65536', 'https', '443,'],
    PENSTOCK_DNS_SERVERS: [
      'dns.example',
      '10.0.0.10:0',
      '10.0.0.10:65536',
      '10.0.0.10:',
      'fd00::10]:53',
      '[10.0.0.10]',
    ],
    PENSTOCK_INITIAL_CREDITS: ['-1', '1e3'],
    PENSTOCK_OIDC_ISSUER: ['id.example'],
    PENSTOCK_OIDC_JWKS_URL: ['ftp://id.example'],
    PENSTOCK_MAX_BODY_BYTES: ['0', '64000001'],
    PENSTOCK_MAX_BODIES_BYTES: ['0', '999999', 'much'],
    PENSTOCK_MAX_CONNECTIONS: ['0', '1000001'],
    PENSTOCK_KEY_REQUESTS_PER_SECOND: ['-1', '100001', '1.5'],
    PENSTOCK_TESTS_PER_MINUTE: ['100001'],
    PENSTOCK_SIGN_UPS_PER_MINUTE: ['100001'],
    PENSTOCK_MAX_CUSTOMERS: ['1000001'],
    PENSTOCK_MAX_PROJECTS: ['1000001'],
    PENSTOCK_MAX_BUFFERS: ['many'],
    PENSTOCK_DLQ_RETENTION_DAYS: ['0', '3651', '30d'],
    PENSTOCK_DLQ_QUOTA: ['0', '1.5', 'many'],
    PENSTOCK_AUDIT_DAYS: ['0', '3651', '90d'],
    PENSTOCK_ADMIN_URL: [
      'ftp://admin',
      'admin:8080',
      'http://u:p@admin',
      'http://admin/?a=b',
      'http://admin/#a',
    ],
    PENSTOCK_WATCH_NAMESPACES: ['One', 'one,', 'a'.repeat(64), '-one', 'a.b'],
    PENSTOCK_LEASE_NAMESPACE: ['one,two'],
    PENSTOCK_LEASE_NAME: ['Lease', 'a/b', '.a'],
    PENSTOCK_VERIFY_SECONDS: ['0', '86401', '5m'],
    PENSTOCK_LOG_LEVEL: ['verbose'],
  }
  for (const [name, values] of Object.entries(bad)) {
    it(`refuses a bad ${name} in one line that names it`, () => {
      for (const value of values)
        expect(problem({ [name]: value }), value).to.match(new RegExp(`^${name}: [^\\n]+$`))
    })
  }

  it('refuses less room for all bodies than for one', () => {
    const sizes = { PENSTOCK_MAX_BODY_BYTES: '2000000', PENSTOCK_MAX_BODIES_BYTES: '1999999' }
    expect(problem(sizes)).to.match(/^PENSTOCK_MAX_BODIES_BYTES: must be at least PENSTOCK_MAX_BODY_BYTES$/)
  })

  it('never repeats a secret in its refusal', () => {
    expect(problem({ PENSTOCK_OWNER_KEYS: 'acme=hunter2' })).to.not.include('hunter2')
    expect(problem({ PENSTOCK_ADMIN_URL: 'http://u:hunter2@admin' })).to.not.include('hunter2')
    expect(problem({ PENSTOCK_SECRET_KEY: 'hunter2' })).to.not.include('hunter2')
    expect(problem({ PENSTOCK_DATABASE_URL: 'mysql://u:hunter2@db' })).to.not.include('hunter2')
  })

  it('refuses a role of a cluster without what it works with', () => {
    for (const name of Object.keys(CLUSTER)) {
      expect(problem({ ...CLUSTER, [name]: '' }, 'ingress')).to.equal(`${name}: is required for ingress`)
    }
    expect(problem({}, 'operator')).to.equal('PENSTOCK_ADMIN_URL: is required for operator')
    expect(problem({}, 'migrate')).to.equal('PENSTOCK_DATABASE_URL: is required for migrate')
    expect(problem({ PENSTOCK_LOCAL: 'false' })).to.equal(
      'PENSTOCK_SECRET_KEY: is required outside the local instance',
    )
  })

  it('takes a start for a local one by itself only where this machine alone reaches it', () => {
    for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost'])
      expect(readConfig({ PENSTOCK_HOST: host }, 'penstock').local, host).to.equal(true)
    const secret = { PENSTOCK_SECRET_KEY: CLUSTER.PENSTOCK_SECRET_KEY }
    for (const role of ['penstock', 'cluster'] as const) {
      for (const host of ['0.0.0.0', '::', '10.0.0.7', 'build.lan']) {
        expect(problem({ PENSTOCK_HOST: host }, role)).to.equal(
          `PENSTOCK_SECRET_KEY: is required outside the local instance; on ${host}, which others may reach, it is one only with PENSTOCK_LOCAL=true`,
        )
        const open = readConfig({ PENSTOCK_HOST: host, ...secret }, role)
        expect([open.local, open.allowDestinations, open.initialCredits]).to.deep.equal([false, [], 0])
        const asked = readConfig({ PENSTOCK_HOST: host, PENSTOCK_LOCAL: 'true' }, role)
        expect([asked.local, asked.initialCredits]).to.deep.equal([true, 100_000])
      }
    }
  })

  it('refuses half an identity provider, and an insecure one outside the local instance', () => {
    expect(problem({ PENSTOCK_OIDC_ISSUER: 'https://id.example' })).to.match(/^PENSTOCK_OIDC_AUDIENCE: /)
    expect(problem({ PENSTOCK_OIDC_AUDIENCE: 'penstock' })).to.match(/^PENSTOCK_OIDC_ISSUER: /)
    const plain = { PENSTOCK_OIDC_ISSUER: 'http://id.example', PENSTOCK_OIDC_AUDIENCE: 'penstock' }
    expect(problem({ ...CLUSTER, ...plain }, 'admin')).to.match(/^PENSTOCK_OIDC_ISSUER: /)
    expect(readConfig(plain, 'penstock').oidc?.issuer).to.equal('http://id.example')
    const upper = { ...plain, PENSTOCK_OIDC_ISSUER: 'HTTP://id.example' }
    expect(problem({ ...CLUSTER, ...upper }, 'admin')).to.match(/^PENSTOCK_OIDC_ISSUER: must be https/)
    const keys = {
      ...plain,
      PENSTOCK_OIDC_ISSUER: 'https://id.example',
      PENSTOCK_OIDC_JWKS_URL: 'http://id.example/keys',
    }
    expect(problem({ ...CLUSTER, ...keys }, 'admin')).to.match(/^PENSTOCK_OIDC_JWKS_URL: must be https/)
    expect(readConfig(keys, 'penstock').oidc?.jwksUrl).to.equal('http://id.example/keys')
  })

  it('refuses an identity provider whose address cannot be one', () => {
    const oidc = { PENSTOCK_OIDC_ISSUER: 'https://id.example', PENSTOCK_OIDC_AUDIENCE: 'penstock' }
    for (const issuer of [
      'https://id.example?a=1',
      'https://id.example/#x',
      'https://u:hunter2@id.example',
    ]) {
      const text = problem({ ...oidc, PENSTOCK_OIDC_ISSUER: issuer })
      expect(text, issuer).to.match(/^PENSTOCK_OIDC_ISSUER: must (have|hold) no [^\n]+$/)
      expect(text).to.not.include('hunter2')
    }
    const jwksUrl = { PENSTOCK_OIDC_JWKS_URL: 'https://u:hunter2@id.example/keys' }
    expect(problem({ ...oidc, ...jwksUrl })).to.match(/^PENSTOCK_OIDC_JWKS_URL: must hold no user [^\n]+$/)
    const query = { PENSTOCK_OIDC_JWKS_URL: 'https://id.example/keys?v=2' }
    expect(readConfig({ ...oidc, ...query }, 'penstock').oidc?.jwksUrl).to.equal(
      'https://id.example/keys?v=2',
    )
  })

  describe('of Stripe', () => {
    const stripe = {
      PENSTOCK_STRIPE_KEY: 'sk_test_0123456789',
      PENSTOCK_STRIPE_WEBHOOK_SECRETS: 'whsec_01234567, whsec_89abcdef',
      PENSTOCK_STRIPE_RETURN_URL: 'https://app.example/billing',
    }

    it('is a key with one or two secrets and the way back', () => {
      expect(readConfig(stripe, 'penstock').stripe).to.deep.equal({
        key: 'sk_test_0123456789',
        webhookSecrets: ['whsec_01234567', 'whsec_89abcdef'],
        returnUrl: 'https://app.example/billing',
        origin: undefined,
      })
      const { PENSTOCK_STRIPE_WEBHOOK_SECRETS: _, ...untold } = stripe
      expect(readConfig(untold, 'penstock').stripe?.webhookSecrets).to.deep.equal([])
      expect(readConfig({}, 'penstock').stripe).to.equal(undefined)
    })

    it('names the variable that is wrong or missing, and no secret', () => {
      const wrong: [Record<string, string>, RegExp][] = [
        [{ ...stripe, PENSTOCK_STRIPE_KEY: 'pk_test_hunter2222' }, /^PENSTOCK_STRIPE_KEY: must be a secret /],
        [{ ...stripe, PENSTOCK_STRIPE_KEY: '' }, /^PENSTOCK_STRIPE_KEY: is required with the other /],
        [{ ...stripe, PENSTOCK_STRIPE_RETURN_URL: '' }, /^PENSTOCK_STRIPE_RETURN_URL: is required with /],
        [{ ...stripe, PENSTOCK_STRIPE_RETURN_URL: 'https://u:hunter2@x.y' }, /^PENSTOCK_STRIPE_RETURN_URL: /],
        [{ ...stripe, PENSTOCK_STRIPE_WEBHOOK_SECRETS: 'hunter22222' }, /^PENSTOCK_STRIPE_WEBHOOK_SECRETS: /],
        [
          { ...stripe, PENSTOCK_STRIPE_WEBHOOK_SECRETS: 'whsec_01234567,whsec_01234568,whsec_01234569' },
          /^PENSTOCK_STRIPE_WEBHOOK_SECRETS: must be one or two/,
        ],
      ]
      for (const [env, text] of wrong) {
        expect(problem(env), JSON.stringify(env)).to.match(text)
        expect(problem(env)).to.not.include('hunter')
      }
      const plain = { ...CLUSTER, ...stripe, PENSTOCK_STRIPE_RETURN_URL: 'http://app.example' }
      expect(problem(plain, 'admin')).to.match(/^PENSTOCK_STRIPE_RETURN_URL: must be https/)
    })
  })

  it('is shown without its secrets', () => {
    const shown = describeEnvironment({ ...CLUSTER, PENSTOCK_PORT: '80', HOME: '/root' })
    expect(shown).to.deep.equal({
      PENSTOCK_PORT: '80',
      PENSTOCK_NATS_URL: 'set',
      PENSTOCK_STRIPE_KEY: 'unset',
      PENSTOCK_STRIPE_WEBHOOK_SECRETS: 'unset',
      PENSTOCK_DATABASE_URL: 'set',
      PENSTOCK_SECRET_KEY: 'set',
      PENSTOCK_OWNER_KEYS: 'unset',
    })
  })
})

describe('the number of processes', () => {
  it('is half the cores, 1 to 16, and one of every other program', () => {
    expect([1, 2, 3, 4, 8, 64].map((cores) => defaultProcesses(cores))).to.deep.equal([1, 1, 1, 2, 4, 16])
    expect(readConfig({}, 'penstock').processes).to.equal(defaultProcesses())
    expect(readConfig({}, 'cluster').processes).to.equal(1)
  })
})

describe('the number of shards', () => {
  it('is half the cores, 1 to 8', () => {
    expect([1, 2, 4, 7, 16, 64].map((cores) => defaultShards(cores))).to.deep.equal([1, 1, 2, 3, 8, 8])
  })
})

function problem(env: Record<string, string>, role: Parameters<typeof readConfig>[1] = 'penstock'): string {
  try {
    readConfig(env, role)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return 'accepted'
}
