/** What the service says of itself: `/health` to everybody, `/live` and `/ready` to whoever runs it. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { NatsServer } from '../../internal/embedded/nats-server.ts'
import { freePort } from '../../internal/embedded/port.ts'
import type { PostgresServer } from '../../internal/embedded/postgres-server.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { eventually } from '../support/eventually.ts'
import { ownNats, ownPostgres } from '../support/servers.ts'
import { createInstallation, type Installation, untilHealthy } from '../support/service.ts'
import { harness, NEVER_DUE } from './harness.ts'

const { version } = packageFile

/** Statuses of `/live` and `/ready`, and of `/health` with its body. */
interface Told {
  live: number
  ready: number
  health: number
  body: unknown
}

describe('health, liveness and readiness', function () {
  this.timeout(120_000)
  let nats: NatsServer
  let postgres: PostgresServer
  let installation: Installation
  let opsUrl: string

  before(async () => {
    nats = await ownNats()
    postgres = await ownPostgres()
    const opsPort = await freePort()
    opsUrl = `http://127.0.0.1:${opsPort}`
    installation = await createInstallation({
      env: {
        PENSTOCK_NATS_URL: nats.url,
        PENSTOCK_DATABASE_URL: postgres.url,
        PENSTOCK_OPS_PORT: String(opsPort),
        PENSTOCK_SHARDS: '1',
      },
    })
  })

  after(async () => {
    for (const server of [nats, postgres]) if (server.running) server.kill('SIGCONT')
    await installation.stop()
  })

  const told = async (): Promise<Told> => {
    const { url } = installation.service
    const [live, ready, health] = await Promise.all([
      fetch(`${opsUrl}/live`),
      fetch(`${opsUrl}/ready`),
      fetch(`${url}/health`),
    ])
    return { live: live.status, ready: ready.status, health: health.status, body: await health.json() }
  }
  const all = { postgres: 'ok', nats: 'ok', inboxes: 'ok', shards: 'ok', secrets: 'ok' }
  const well: Told = { live: 200, ready: 200, health: 200, body: { status: 'ok', version, checks: all } }
  const without = (checks: Partial<typeof all> | Record<string, string>): Told => ({
    live: 200,
    ready: 503,
    health: 503,
    body: { status: 'unavailable', version, checks: { ...all, ...checks } },
  })
  const untilTold = (wanted: Told) =>
    eventually(async () => expect(await told()).to.deep.equal(wanted), { timeoutMs: 30_000, everyMs: 50 })

  /** Shards that stand still for long without their broker are in trouble, too. */
  const untilBrokerIsMissed = () =>
    eventually(
      async () => {
        const now = await told()
        const { shards } = (now.body as { checks: Record<string, string> }).checks
        expect(shards).to.be.oneOf(['ok', 'down'])
        expect(now).to.deep.equal(without({ nats: 'down', shards: shards! }))
      },
      { timeoutMs: 60_000, everyMs: 50 },
    )

  it('is live, and not ready, while it starts', async () => {
    postgres.kill('SIGSTOP')
    const service = await installation.spawn()
    await eventually(async () => (await fetch(`${opsUrl}/live`)).status === 200, { timeoutMs: 60_000 })
    expect((await fetch(`${opsUrl}/ready`)).status).to.equal(503)
    postgres.kill('SIGCONT')
    await untilHealthy(service)
    await untilTold(well)
  })

  it('needs no credential and is told at once, and is no page to keep', async () => {
    const answer = await fetch(`${installation.service.url}/health`)
    expect(answer.headers.get('cache-control')).to.equal('no-store')
    const head = await fetch(`${installation.service.url}/health`, { method: 'HEAD' })
    expect([head.status, await head.text()]).to.deep.equal([200, ''])
    const post = await fetch(`${installation.service.url}/health`, { method: 'POST' })
    expect([post.status, post.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD, OPTIONS'])
  })

  it('names a Postgres that is gone, stays live, and is well again with it', async () => {
    await postgres.stop()
    await untilTold(without({ postgres: 'down' }))
    await postgres.restart()
    await untilTold(well)
  })

  it('names a broker that is gone, stays live, and is well again with it', async () => {
    await nats.stop()
    await untilBrokerIsMissed().finally(() => nats.restart())
    await untilTold(well)
  })

  it('names a broker that does not answer any more', async () => {
    nats.kill('SIGSTOP')
    await untilBrokerIsMissed().finally(() => nats.kill('SIGCONT'))
    await untilTold(well)
  })
})

describe('a service that drains', function () {
  this.timeout(120_000)
  let opsUrl: string
  const on = harness({
    installation: async () => {
      const installation = await createInstallation({ shared: true })
      opsUrl = (await installation.start()).opsUrl
      return installation
    },
  })

  it('is live, and not ready, until it has ended', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 1 } })
    const { promise: answered, resolve: answerNow } = Promise.withResolvers<object>()
    channel.answer(() => answered)
    await channel.send({ group: 'a' })
    await channel.untilRequests(1)
    expect((await fetch(`${opsUrl}/ready`)).status).to.equal(200)
    const stopped = on.installation.stop()
    await eventually(async () => (await fetch(`${opsUrl}/ready`)).status === 503)
    expect((await fetch(`${opsUrl}/live`)).status).to.equal(200)
    answerNow({})
    expect(await stopped, on.installation.output()).to.equal(0)
  })
})
