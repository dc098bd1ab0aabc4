/**
 * Starts that must not succeed, with real processes: each ends with 1 and one line that names what is wrong, and has
 * changed nothing.
 *
 * Two nodes with one id are no case of it: a node's id is a random UUID of each run, and no variable sets it. What two
 * leases of one id do is shown in test/nats/leases-faults.test.ts.
 */
import { randomUUID } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type JetStreamManager, type NatsConnection, nanos } from 'nats'
import postgres from 'postgres'
import { encodeLease } from '../../internal/nats/leases/lease-value.ts'
import { Cluster, type ClusterRole } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { emptyDatabase } from '../support/servers.ts'
import { startSink } from '../support/sink.ts'

const ROLES = ['actor', 'ingress', 'admin'] as const

describe('a start of a node', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let nats: NatsConnection
  let manager: JetStreamManager
  let sql: postgres.Sql
  const ending: (() => unknown)[] = []

  beforeEach(async () => {
    cluster = await Cluster.create()
    const { host, username, password } = new URL(cluster.natsUrl)
    nats = await connect({ servers: host, user: username, pass: password })
    manager = await nats.jetstreamManager()
    sql = postgres(cluster.databaseUrl, { max: 1, onnotice: () => {} })
  })

  afterEach(async () => {
    for (const end of ending.splice(0)) await end()
    await cluster.stop()
    await nats.close()
    await sql.end()
  })

  /** What a node says that ends with 1: its only line that is no event of a start or a stop. */
  async function refusal(role: ClusterRole | 'migrate', env: Record<string, string> = {}): Promise<string> {
    const node = await cluster.spawn(role, env)
    expect(await node.exited(), node.output()).to.equal(1)
    const plain = node
      .output()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('{'))
    const fatal = node.events.filter(({ level }) => level === 'fatal' || level === 'error')
    expect(
      fatal.filter((event) => event.err !== undefined),
      'with a stack',
    ).to.deep.equal([])
    const lines = [...plain, ...fatal.map(({ msg }) => msg)]
    expect(lines, node.output()).to.have.length(1)
    return lines[0]!
  }

  /** Refused, and what is stored is what it was. */
  async function refusedUnchanged(
    role: ClusterRole | 'migrate',
    env: Record<string, string> = {},
  ): Promise<string> {
    const before = [await streams(), await tables()]
    const line = await refusal(role, env)
    expect([await streams(), await tables()]).to.deep.equal(before)
    return line
  }

  /** All streams but for what a running node renews. */
  async function streams(): Promise<object[]> {
    const found = []
    for await (const { config, created, state } of manager.streams.list()) {
      const settled = config.name.startsWith('INBOX') ? state : { first_seq: state.first_seq }
      found.push({ config, created, ...(config.name.startsWith('KV_') ? {} : { state: settled }) })
    }
    return found.sort((one, other) => (one.config.name < other.config.name ? -1 : 1))
  }

  /** Every row of every table. */
  async function tables(): Promise<Record<string, unknown>> {
    const names =
      await sql`SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1`
    const contents: Record<string, unknown> = {}
    for (const { name } of names)
      contents[name] = await sql`SELECT t::text AS row FROM ${sql(name)} t ORDER BY 1`
    return contents
  }

  /** As a program of another version writes it, until the test ends. */
  /** The address of a NATS server, as far as its first line goes. */
  async function brokerThatSays(given: { version?: string; max_payload?: number }): Promise<string> {
    const info = {
      server_id: 'S',
      version: '2.12.1',
      proto: 1,
      headers: true,
      max_payload: 8_388_608,
      ...given,
    }
    const broker = createServer((socket) => {
      socket.write(`INFO ${JSON.stringify(info)}\r\n`)
      socket.on('error', () => {})
      socket.on('data', (chunk) => chunk.includes('PING') && socket.write('PONG\r\n'))
    })
    await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve))
    ending.push(() => broker.close())
    const { port } = broker.address() as { port: number }
    return `nats://127.0.0.1:${port}`
  }

  async function standIn(installation: { shards: number; serializer: number }): Promise<void> {
    const boot = randomUUID()
    const lease = {
      boot,
      role: 'actor' as const,
      node: 'pod-7',
      shards: [],
      accepting: false,
      webhooks: 'none' as const,
      installation,
      version: '9.9.9',
      since: 1,
    }
    await manager.streams.add({
      name: 'KV_penstock-leases',
      subjects: ['$KV.penstock-leases.>'],
      storage: 'memory' as never,
      max_msgs_per_subject: 1,
      max_age: nanos(5_000),
      duplicate_window: nanos(5_000),
      deny_delete: true,
      allow_rollup_hdrs: true,
    })
    let beat = 0
    const renew = () =>
      nats.request(`$KV.penstock-leases.${boot}`, encodeLease(lease, { writer: boot, beat: ++beat }))
    await renew()
    const timer = setInterval(() => void renew().catch(() => {}), 500)
    ending.push(() => clearInterval(timer))
  }

  it('with another count of shards than a running node is refused, and the node’s empty logs stay', async () => {
    await cluster.start('actor')
    // The last that it writes once it runs its shards, and nothing comes.
    await eventually(async () => (await sql`SELECT FROM projections`).length === 4)
    for (const role of ROLES) {
      const line = await refusedUnchanged(role, { PENSTOCK_SHARDS: '8' })
      expect(line).to.match(/^PENSTOCK_SHARDS: this node has 8, \S+ \(actor\) has 4$/)
    }
    expect(await manager.streams.names().next()).to.have.length(13)
  })

  it('with another count of shards than logs that are not empty is refused', async () => {
    const sink = await startSink()
    ending.push(() => sink.close())
    const [admin, ingress] = await Promise.all([cluster.start('admin'), cluster.start('ingress')])
    const projectId = await cluster.api(admin).createProject()
    await cluster.api(admin).createBuffer(projectId, 'kept', { delivery: { url: sink.url() } })
    expect((await cluster.api(ingress).ingest(projectId, 'kept', { group: 'a' })).status).to.equal(202)
    for (const node of cluster.nodes) expect(await node.stop()).to.equal(0)
    expect(await refusedUnchanged('actor', { PENSTOCK_SHARDS: '8' })).to.match(
      /^the logs were made for 4 shards and INBOX_\d is not empty: they cannot be used with 8$/,
    )
    await cluster.start('actor')
    await sink.waitForCount(1, undefined, 30_000)
  })

  it('beside one whose batches it could not build again is refused', async () => {
    await standIn({ shards: 4, serializer: 2 })
    for (const role of ROLES) {
      expect(await refusedUnchanged(role)).to.equal(
        'pod-7 (actor) runs version 9.9.9, which builds batches by serializer 2: this version knows them up to 1',
      )
    }
  })

  it('beside one of an earlier serializer is none that is refused: so a cluster is upgraded', async () => {
    await standIn({ shards: 4, serializer: 0 })
    await cluster.start('actor')
  })

  it('on a broker that is too old is refused', async () => {
    const url = await brokerThatSays({ version: '2.10.29' })
    for (const role of ROLES) {
      const line = await refusedUnchanged(role, { PENSTOCK_NATS_URL: url })
      expect(line).to.equal('PENSTOCK_NATS_URL: NATS server 2.10.29 is too old: 2.11.4 is needed')
    }
  })

  it('on a broker that takes no message of the largest size is refused with the size', async () => {
    const small = await brokerThatSays({ max_payload: 262_144 })
    for (const role of ROLES) {
      const line = await refusedUnchanged(role, { PENSTOCK_NATS_URL: small, PENSTOCK_MAX_BODY_BYTES: '2000' })
      expect(line).to.equal('the NATS server has a max_payload of 262144: at least 540672 is needed')
    }
    const url = await brokerThatSays({ max_payload: 1_000_000 })
    for (const role of ROLES) {
      const line = await refusedUnchanged(role, { PENSTOCK_NATS_URL: url })
      expect(line).to.equal(
        "PENSTOCK_MAX_BODY_BYTES: must be at most 983616, or the NATS server's max_payload at least 1016384",
      )
    }
  })

  it('on streams that can lose data, have too few replicas or are gone is refused', async () => {
    const actor = await cluster.start('actor')
    await actor.stop()
    await manager.streams.update('INBOX_2', { max_age: nanos(600_000) })
    for (const role of ROLES)
      expect(await refusedUnchanged(role)).to.equal('stream INBOX_2: max_age is 600000000000, must be 0')
    await manager.streams.update('INBOX_2', { max_age: 0 })
    expect(await refusedUnchanged('ingress', { PENSTOCK_REPLICAS: '3' })).to.equal(
      'stream INBOX_0: num_replicas is 1, must be 3',
    )
    await manager.streams.delete('JOURNAL_1')
    expect(await refusedUnchanged('actor')).to.match(
      /^stream JOURNAL_1 is missing, but \S+ is there: its data is lost;/,
    )
  })

  it('beside a stream that somebody made by hand is refused before any other is made', async () => {
    await manager.streams.add({ name: 'INBOX_3', subjects: ['items.3.>'] })
    expect(await refusedUnchanged('admin')).to.match(/^stream INBOX_3: discard is "old", must be "new"/)
    expect(await streams()).to.have.length(1)
  })

  it('without secret key, broker or database is refused by the variable’s name', async () => {
    for (const role of ROLES) {
      const line = await refusedUnchanged(role, { PENSTOCK_SECRET_KEY: '' })
      expect(line).to.equal(`PENSTOCK_SECRET_KEY: is required for ${role}`)
    }
    for (const name of ['PENSTOCK_NATS_URL', 'PENSTOCK_DATABASE_URL'])
      expect(await refusedUnchanged('actor', { [name]: '' })).to.equal(`${name}: is required for actor`)
    const secret = await refusedUnchanged('actor', { PENSTOCK_SECRET_KEY: 'c2hvcnQ=' })
    expect(secret)
      .to.match(/^PENSTOCK_SECRET_KEY: /)
      .and.not.include('c2hvcnQ=')
  })

  it('on a port that somebody else has, or an address that is not here, is refused by the variable’s name', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    ending.push(() => other.close())
    const taken = String((other.address() as AddressInfo).port)
    const inUse = (name: string) => `${name}: listen EADDRINUSE: address already in use 127.0.0.1:${taken}`
    expect(await refusedUnchanged('actor', { PENSTOCK_OPS_PORT: taken })).to.equal(inUse('PENSTOCK_OPS_PORT'))
    expect(await refusal('ingress', { PENSTOCK_PORT: taken })).to.equal(inUse('PENSTOCK_PORT'))
    const foreignHost = await refusedUnchanged('actor', { PENSTOCK_HOST: '192.0.2.1' })
    expect(foreignHost).to.match(/^PENSTOCK_HOST: listen EADDRNOTAVAIL: .* 192\.0\.2\.1/)
  })

  it('on a database with newer migrations is refused, by migrate too', async () => {
    await sql`INSERT INTO schema_migrations (name) VALUES ('999-later.sql')`
    for (const role of ['migrate', 'actor', 'admin'] as const) {
      expect(await refusedUnchanged(role)).to.equal(
        'the database has the migration 999-later.sql, which this version does not know',
      )
    }
  })

  it('on a database that was not migrated is refused, and names what to do', async () => {
    const bare = await emptyDatabase()
    expect(await refusal('ingress', { PENSTOCK_DATABASE_URL: bare })).to.match(
      /^the database lacks the migration \S+\.sql: run the migrate program first$/,
    )
    expect(await streams()).to.deep.equal([])
  })

  it('succeeds when nothing of it is wrong, and a node that was refused starts once it is mended', async () => {
    expect(await refusal('actor', { PENSTOCK_PROCESSES: '2' })).to.equal(
      'PENSTOCK_PROCESSES: is for npm start',
    )
    const actor = await cluster.start('actor')
    await eventually(async () => (await fetch(`${actor.opsUrl}/ready`)).status === 200)
  })
})
