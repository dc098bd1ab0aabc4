/**
 * Back-pressure: a buffer that holds its whole share of a shard is refused, and it alone
 * (docs/architecture/protocol.md, "Back-pressure"). The service is the real one; its log of a megabyte is made before
 * its first start.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { ensureStreams } from '../../internal/nats/streams/streams.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { connectTo } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { natsAccount } from '../support/servers.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { FRONTS } from '../support/shape.ts'
import { type Channel, countItems, harness, NEVER_DUE, payloadsOf, SOON } from './harness.ts'

const INBOX_BYTES = 1_000_000
/** A quarter of the log holds eight of them. */
const ITEM_BYTES = 30_000
/** Half of the log holds sixteen of them. */
const ITEMS_OF_CUSTOMER = 17
const TO_FILL = 9

const REFUSAL = { error: 'Buffer holds its full share of storage, try again later' }
const CUSTOMER_REFUSAL = { error: 'Account holds its full share of storage, try again later' }

describe('back-pressure', function () {
  this.timeout(120_000)
  const on = harness({ installation: smallInstallation })

  it('refuses the buffer that holds its share until it is drained, and no other one', async () => {
    const full = await on.channel({ batch: { ...NEVER_DUE, maxItems: 1_000, maxBytes: 16_000_000 } })
    const other = await on.channel({ batch: SOON })
    for (let n = 0; n < TO_FILL; n++) await full.send(item(n))
    const [warned] = await eventually(() => {
      const events = on.installation.events('a buffer holds its whole share')
      return events.length >= FRONTS && events
    })
    expect(warned).to.include({ level: 'warn', shard: 0, limit: INBOX_BYTES / 4 })
    expect(warned?.bytes).to.be.within(TO_FILL * ITEM_BYTES, TO_FILL * (ITEM_BYTES + 500))

    const { credits } = await on.api.credits()
    const counted = await on.installation.metric('penstock_ingest_over_share_total')
    for (const group of ['a', 'b', 'c']) {
      const refused = await full.ingest({ group })
      expect([refused.status, refused.json()]).to.deep.equal([503, REFUSAL])
      expect(refused.headers.get('retry-after')).to.equal('5')
    }
    expect(await on.installation.metric('penstock_ingest_over_share_total')).to.equal(counted + 3)
    expect((await on.api.credits()).credits, 'nothing was charged').to.equal(credits)
    expect((await full.ingest('no JSON')).status, 'bad requests are told so').to.equal(400)

    await other.sendAll([1, 2, 3].map((n) => ({ group: 'a', n })))
    expect(countItems(await other.untilItems(3))).to.equal(3)

    await full.patch({ enabled: false })
    await untilRefused(full, 400, 'Buffer is disabled')
    await full.patch({ enabled: true })
    await untilRefused(full, 503, REFUSAL.error)
    await full.patch({ batch: { idleTimeoutMs: 100 } })
    const drained = await full.untilItems(TO_FILL)
    expect(payloadsOf(drained).map(({ n }) => n)).to.deep.equal([...Array(TO_FILL).keys()])
    await eventually(async () => (await full.ingest({ group: 'a', n: TO_FILL })).status === 202)
    expect(countItems(await full.untilItems(TO_FILL + 1))).to.equal(TO_FILL + 1)
    await eventually(() => on.installation.events('a buffer has room again').length === FRONTS)
  })

  it('refuses a customer that holds its share in many buffers, and no other one', async () => {
    const waiting = { ...NEVER_DUE, maxItems: 1_000, maxBytes: 16_000_000 }
    const channels = await Promise.all([1, 2, 3, 4].map(() => on.channel({ batch: waiting })))
    const api = on.installation.api('other')
    const projectId = await api.createProject()
    const other = await on.channel({ batch: waiting }, { api, projectId })

    for (let n = 0; n < ITEMS_OF_CUSTOMER; n++) await channels[n % 4]!.send(item(n))
    const [warned] = await eventually(() => {
      const events = on.installation.events('a customer holds its whole share')
      return events.length >= FRONTS && events
    })
    expect(warned).to.include({ level: 'warn', shard: 0, customerId: 'e2e' })
    expect(warned?.bytes).to.be.within(INBOX_BYTES * 0.49, INBOX_BYTES * 0.54)
    const fresh = await on.channel({ batch: waiting })
    for (const refused of [...channels, fresh]) {
      const answer = await refused.ingest({ group: 'b' })
      expect([answer.status, answer.json()]).to.deep.equal([503, CUSTOMER_REFUSAL])
      expect(answer.headers.get('retry-after')).to.equal('5')
    }

    // As much as its own share of what is left, and all the while the first one is refused.
    for (let n = 0; n < 5; n++) await other.send(item(n))
    expect((await fresh.ingest({ group: 'b' })).status).to.equal(503)

    for (const channel of [...channels, other]) await channel.patch({ batch: { idleTimeoutMs: 100 } })
    const drained = await Promise.all(channels.map((channel, n) => channel.untilItems(n === 0 ? 5 : 4)))
    expect(drained.reduce((sum, batches) => sum + countItems(batches), 0)).to.equal(ITEMS_OF_CUSTOMER)
    expect(countItems(await other.untilItems(5))).to.equal(5)
    await eventually(async () => (await fresh.ingest({ group: 'b' })).status === 202)
  })

  it('shows how full the logs are', async () => {
    expect(await on.installation.metric('penstock_log_max_bytes', { log: 'inbox', shard: '0' })).to.equal(
      INBOX_BYTES,
    )
    expect(await on.installation.metric('penstock_log_max_bytes', { log: 'journal' })).to.be.above(
      INBOX_BYTES,
    )
    expect(await on.installation.metric('penstock_log_max_bytes', { log: 'archive' })).to.be.above(0)
    const bytes = await on.installation.metric('penstock_log_bytes', { log: 'journal' })
    expect(bytes).to.be.above(0)
  })
})

/** Each process that takes requests learns of a change in its own time. */
async function untilRefused(channel: Channel, status: number, error: string): Promise<void> {
  await eventually(async () => {
    const answer = await channel.ingest({ group: 'a' })
    expect([answer.status, answer.json()]).to.deep.equal([status, { error }])
  })
}

function item(n: number) {
  return { group: 'a', n, fill: 'x'.repeat(ITEM_BYTES) }
}

async function smallInstallation(): Promise<Installation> {
  const { url } = await natsAccount()
  const { connection } = await connectTo(url)
  const storeBytes = 256 * 1024 * 1024
  await ensureStreams(connection, { clock: systemClock(), shards: 1, replicas: 1, storeBytes })
  const manager = await connection.nats.jetstreamManager()
  await manager.streams.update('INBOX_0', { max_bytes: INBOX_BYTES })
  await connection.close()
  const env = { PENSTOCK_NATS_URL: url, PENSTOCK_SHARDS: '1' }
  const installation = await createInstallation({ shared: true, env, customers: ['e2e', 'other'] })
  await installation.start()
  return installation
}
