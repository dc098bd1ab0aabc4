/** Figures of real traffic (docs/reference/analytics.md): exact, also over kills of the process. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'

import type { AnalyticsSummary, AnalyticsTimeseries } from '../../internal/analytics/analytics.ts'
import { eventually } from '../support/eventually.ts'
import { createInstallation } from '../support/service.ts'
import { inTurn } from '../support/sink.ts'
import { type Channel, type ChannelFields, harness, NEVER_DUE } from './harness.ts'

const QUICK_RETRIES: ChannelFields = {
  batch: { ...NEVER_DUE, maxItems: 1 },
  throughput: { maxAttempts: 3, backoff: { initialMs: 50, multiplier: 1 } },
  dlqPauseThreshold: 10,
}

interface Figures {
  ingested: number
  delivered: number
  dead: number
  retries: number
  itemsDelivered: number
}

describe('the figures of a customer', function () {
  this.timeout(240_000)
  const on = harness({
    installation: async () => {
      const installation = await createInstallation({ shared: true })
      await installation.start()
      return installation
    },
  })
  let channel: Channel
  let failing: Channel

  before(async () => {
    channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 3 } })
    failing = await on.channel(QUICK_RETRIES)
  })

  const summary = (): Promise<AnalyticsSummary> =>
    on.api.expect(200, 'GET', '/v1/analytics/summary?customerId=e2e')
  const series = (query = ''): Promise<AnalyticsTimeseries> =>
    on.api.expect(200, 'GET', `/v1/analytics/timeseries?customerId=e2e${query}`)

  /** Both endpoints, and the histograms, come to exactly this. */
  const untilFigures = (wanted: Figures, query = '') =>
    eventually(
      async () => {
        const { totals, histograms } = await series(query)
        expect(totals).to.include(totalsOf(wanted))
        const settled = wanted.delivered + wanted.dead
        for (const buckets of [histograms.timeToFlush, histograms.deliveryDuration]) {
          expect(Object.values(buckets).reduce((sum, count) => sum + count, 0)).to.equal(settled)
        }
        if (query !== '') return
        const { ingestCount, deliveryCount, dlqCount } = (await summary()).today
        expect([ingestCount, deliveryCount, dlqCount]).to.deep.equal([wanted.ingested, settled, wanted.dead])
      },
      { everyMs: 100, timeoutMs: 15_000 },
    )

  it('count what was accepted, without duplicates and refusals', async () => {
    await channel.send({ group: 'a', messageId: 'm1' })
    for (let n = 0; n < 4; n++) {
      expect(await channel.send({ group: 'a', messageId: 'm1' })).to.include({ duplicate: true })
    }
    expect((await channel.ingest('{"group":')).status).to.equal(400)
    expect((await channel.ingest({ no: 'group' })).status).to.equal(400)
    expect((await channel.ingest({ group: 'a' }, { 'x-api-key': 'svk_wrong' })).status).to.equal(401)
    await channel.sendAll([{ group: 'a' }, { group: 'a' }])
    await channel.untilBatches(1)
    await untilFigures({ ingested: 3, delivered: 1, dead: 0, retries: 0, itemsDelivered: 3 })
    expect((await summary()).today).to.include({ avgBatchSize: 3, compressionRatio: 3 })
  })

  it('tell deliveries from dead letters, and count attempts after the first', async () => {
    failing.answer(inTurn({ status: 500 }, { status: 500 }, {}))
    await failing.send({ group: 'recovers' })
    await failing.untilRequests(3)
    failing.answer({ status: 410 })
    await failing.send({ group: 'refused' })
    await failing.untilDead(1)
    failing.answer({ status: 500 })
    await failing.send({ group: 'exhausted' })
    await failing.untilDead(2)
    await untilFigures({ ingested: 6, delivered: 2, dead: 2, retries: 4, itemsDelivered: 4 })
    const { totals, timeseries } = await series()
    expect([totals.compressionRatio, totals.successRate]).to.deep.equal([2, 50])
    expect(timeseries.at(-1)).to.include(totalsOfDay(totals))
    const { today, trend, counts } = await summary()
    expect(today).to.include({ avgBatchSize: 6 / 4, compressionRatio: 2 })
    expect(trend).to.deep.equal({ ingestDelta: 100, deliveryDelta: 100, successRateDelta: 50 })
    expect(counts).to.deep.equal({ projects: 1, buffers: 2 })
  })

  it('of one buffer are its own', async () => {
    const one = { ingested: 3, delivered: 1, dead: 0, retries: 0, itemsDelivered: 3 }
    await untilFigures(one, `&bufferId=${channel.bufferId}`)
    const other = { ingested: 3, delivered: 1, dead: 2, retries: 4, itemsDelivered: 1 }
    await untilFigures(other, `&bufferId=${failing.bufferId}`)
  })

  it('are exact after kills, with batches buffered, in flight, and delivered but not counted yet', async () => {
    let wanted = { ingested: 6, delivered: 2, dead: 2, retries: 4, itemsDelivered: 4 }
    failing.answer({ fault: 'hang' })
    for (let round = 1; round <= 3; round++) {
      const before = channel.requests().length
      await channel.sendAll(Array.from({ length: 8 }, () => ({ group: `round ${round}` })))
      await failing.send({ group: `in flight ${round}` })
      await channel.untilRequests(before + 2)
      await channel.untilEvents('delivery', before + 2)
      await on.installation.stop('SIGKILL')
      await on.installation.start()
      wanted = { ...wanted, ingested: wanted.ingested + 9, delivered: wanted.delivered + 2 }
      wanted.itemsDelivered += 6
    }
    failing.answer({})
    await on.installation.stop('SIGKILL')
    await on.installation.start()
    await channel.patch({ batch: { maxItems: 1 } })
    // Six were left over, and three batches hung.
    await untilFigures({
      ...wanted,
      delivered: wanted.delivered + 6 + 3,
      itemsDelivered: wanted.itemsDelivered + 6 + 3,
    })
  })

  it('are exact after a burst with duplicates, ended by an orderly stop', async () => {
    const bursts = await on.channel({ batch: { ...NEVER_DUE, maxItems: 1_000 } })
    const ids = Array.from({ length: 400 }, (_, n) => `id ${n % 300}`)
    const answers = await Promise.all(ids.map((messageId) => bursts.send({ group: 'a', messageId })))
    // Not each of them is told when the owner keeps silent for a second; what is counted is the same.
    expect(answers.filter(({ duplicate }) => duplicate === true).length).to.be.within(1, 100)
    expect(await on.installation.stop(), on.installation.output()).to.equal(0)
    await on.installation.start()
    const buffered = { ingested: 300, delivered: 0, dead: 0, retries: 0, itemsDelivered: 0 }
    await untilFigures(buffered, `&bufferId=${bursts.bufferId}`)
    await bursts.patch({ batch: { maxItems: 50 } })
    const delivered = { ...buffered, delivered: 6, itemsDelivered: 300 }
    await untilFigures(delivered, `&bufferId=${bursts.bufferId}`)
    await bursts.remove()
  })

  it('of a deleted buffer stay, and it is no buffer of the account any more', async () => {
    const before = (await series()).totals
    await failing.remove()
    expect((await summary()).counts).to.deep.equal({ projects: 1, buffers: 1 })
    expect((await series()).totals).to.deep.equal(before)
  })
})

function totalsOf({ ingested, delivered, dead, retries, itemsDelivered }: Figures) {
  return {
    ingestCount: ingested,
    deliveryCount: delivered + dead,
    deliverySuccess: delivered,
    deliveryFail: dead,
    dlqCount: dead,
    retryCount: retries,
    itemsDelivered,
  }
}

/** What a day has in common with the totals. */
function totalsOfDay(totals: AnalyticsTimeseries['totals']) {
  const { compressionRatio: _ratio, successRate: _rate, dlqCount: _dead, ...day } = totals
  return day
}
