/**
 * Destination names that do not resolve are the trouble of their own customer, and name servers that are away are
 * nobody's (docs/architecture/protocol.md, "Lookups").
 */
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import { type NameServer, startNameServer } from '../support/name-server.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { type Channel, type ChannelFields, harness, NEVER_DUE } from './harness.ts'

const ONE_EACH: ChannelFields = { batch: { ...NEVER_DUE, maxItems: 1 } }
/** The destination closes each connection, so each batch needs a name. */
const CLOSING = { headers: { connection: 'close' } }

describe('a destination name', function () {
  this.timeout(120_000)
  let names: NameServer
  let installation: Installation

  before(async () => {
    names = await startNameServer()
  })
  after(() => names.close())
  afterEach(() => names.deaf(false))

  const on = harness({
    async installation() {
      installation = await createInstallation({
        shared: true,
        customers: ['quiet', 'noisy'],
        env: { PENSTOCK_DNS_SERVERS: names.address },
      })
      await installation.start()
      return installation
    },
  })

  /** A buffer whose destination is the sink, under a name. */
  async function named(name: string, fields: ChannelFields = {}): Promise<Channel> {
    const channel = await on.channel({ ...ONE_EACH, ...fields, delivery: { url: on.sink.url('/', name) } })
    await channel.patch({ delivery: { url: on.sink.url(channel.path, name) } })
    channel.answer(CLOSING)
    return channel
  }

  it('that is found is asked for again only when its answer is old', async () => {
    names.on('found.test', { addresses: ['127.0.0.1'] })
    const channel = await named('found.test')
    for (let n = 1; n <= 5; n++) {
      await channel.send({ group: `g${n}` })
      await channel.untilRequests(n)
    }
    expect(channel.requests()[0]!.headers.host).to.equal(`found.test:${on.sink.port}`)
    expect(names.questions('found.test').length).to.be.below(10)
  })

  for (const dead of [12, 100])
    it(`of another customer delays nobody, even if there are ${dead} whose servers are silent`, async () => {
      names.on('*.dead.test', { silent: true })
      names.on('*.fine.test', { addresses: ['127.0.0.1'] })
      const noisy = installation.api('noisy')
      const projectId = await noisy.createProject()
      const silent = await Promise.all(
        range(dead).map((n) =>
          on.channel(
            {
              ...ONE_EACH,
              throughput: { maxAttempts: 1 },
              dlqPauseThreshold: 1,
              delivery: { url: on.sink.url('/', `n${dead}-${n}.dead.test`) },
            },
            { api: noisy, projectId },
          ),
        ),
      )
      const quiet = await Promise.all(
        range(10).map((n) => named(`n${dead}-${n}.fine.test`, { dlqPauseThreshold: 1 })),
      )
      await Promise.all(silent.map((channel) => channel.send({ group: 'a' })))
      await eventually(() => names.questions(`n${dead}-0.dead.test`).length > 0)
      let rounds = 0
      while (silent.some((channel) => channel.events('dead').length === 0)) {
        rounds++
        await Promise.all(quiet.map((channel) => channel.send({ group: `g${rounds}` })))
        await Promise.all(quiet.map((channel) => channel.untilRequests(rounds, 5_000)))
      }
      for (const channel of silent) await expectDeadByName(channel)
      for (const channel of quiet) {
        const deliveries = await channel.untilEvents('delivery', rounds)
        expect(deliveries.map(({ outcome, attempt }) => [outcome, attempt])).to.deep.equal(
          range(rounds).map(() => ['delivered', 1]),
        )
        expect(await channel.read()).to.include({ enabled: true, consecutiveDlqCount: 0 })
      }
    })

  it('that no name server can be asked for costs no attempt, and its batch goes out afterwards', async () => {
    names.on('later.test', { addresses: ['127.0.0.1'] })
    const channel = await named('later.test', { throughput: { maxAttempts: 1 } })
    names.deaf(true)
    await channel.send({ group: 'a' })
    await eventually(() => installation.events('no name server answers').length > 0, { timeoutMs: 30_000 })
    expect([channel.events('dead'), channel.events('delivery')]).to.deep.equal([[], []])
    names.deaf(false)
    await channel.untilRequests(1, 30_000)
    const [delivery] = await channel.untilEvents('delivery', 1)
    expect(delivery).to.include({ outcome: 'delivered', attempt: 1 })
    expect(await installation.metric('penstock_dns_lookups_total', { outcome: 'unreachable' })).to.be.above(0)
  })
})

async function expectDeadByName(channel: Channel): Promise<void> {
  const [item] = await channel.untilDead()
  expect(item).to.include({
    lastStatusCode: 0,
    lastError: 'the servers of the host name do not answer (ETIMEOUT)',
    attempt: 0,
  })
  const [delivery] = channel.events('delivery')
  expect(delivery).to.include({ errorClass: 'dns', attempt: 1 })
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}
