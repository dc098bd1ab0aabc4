/** `/metrics` of the ops port tells what happened: each metric by how much this test moves it. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import { createInstallation } from '../support/service.ts'
import { inTurn } from '../support/sink.ts'
import { harness, NEVER_DUE } from './harness.ts'

type Sample = readonly [name: string, labels: Record<string, string>]

describe('the metrics', function () {
  this.timeout(120_000)
  // Of its own: nothing else moves them.
  const on = harness({
    installation: async () => {
      const installation = await createInstallation({ shared: true })
      await installation.start()
      return installation
    },
  })

  it('count requests, duplicates, flushes by reason, attempts and dead letters', async () => {
    const channel = await on.channel({
      batch: { ...NEVER_DUE, maxItems: 2 },
      throughput: { maxAttempts: 2, backoff: { initialMs: 50 } },
    })
    channel.answer(inTurn({}, { status: 500 }, {}, { status: 404 }, { status: 500 }))
    await channel.sendAll([{ group: 'a' }, { group: 'a' }])
    await channel.untilRequests(1)
    await channel.sendAll([{ group: 'a', messageId: 'm' }, { group: 'a', messageId: 'm' }, { group: 'a' }])
    await channel.untilRequests(3)
    await channel.sendAll([{ group: 'a' }, { group: 'a' }])
    await channel.untilDead(1)
    await channel.patch({ batch: { idleTimeoutMs: 100 } })
    await channel.send({ group: 'b' })
    await channel.untilDead(2)
    await channel.ingest('no JSON')
    await channel.ingest({})
    await channel.ingest({ group: 'a' }, { 'x-api-key': 'wrong' })
    await expectMetrics([
      [['penstock_ingest_accepted_total', {}], 8],
      [['penstock_ingest_refused_total', { status: '400' }], 2],
      [['penstock_ingest_refused_total', { status: '401' }], 1],
      [['penstock_inbox_items_total', {}], 8],
      [['penstock_duplicates_total', {}], 1],
      [['penstock_flushes_total', { reason: 'items' }], 3],
      [['penstock_flushes_total', { reason: 'idle' }], 1],
      [['penstock_flushes_total', { reason: 'bytes' }], 0],
      [['penstock_batch_items_count', {}], 4],
      [['penstock_batch_items_sum', {}], 7],
      [['penstock_flush_lateness_count', {}], 4],
      [['penstock_deliveries_total', { outcome: 'delivered' }], 2],
      [['penstock_deliveries_total', { outcome: 'retry' }], 2],
      [['penstock_deliveries_total', { outcome: 'rejected' }], 1],
      [['penstock_deliveries_total', { outcome: 'exhausted' }], 1],
      [['penstock_delivery_failures_total', { class: 'http_5xx' }], 3],
      [['penstock_delivery_failures_total', { class: 'http_4xx' }], 1],
      [['penstock_delivery_duration_count', {}], 6],
      [['penstock_dead_letters_total', { reason: 'non_retryable_error' }], 1],
      [['penstock_dead_letters_total', { reason: 'max_retries_exceeded' }], 1],
      [['penstock_problems_total', {}], 0],
    ])
  })

  it('show what is buffered, and nothing once it is delivered', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const payloads = [1, 2, 3].map((n) => ({ group: `g${n}`, n }))
    await channel.sendAll(payloads)
    const bytes = payloads.reduce((sum, payload) => sum + JSON.stringify(payload).length, 0)
    await expectMetrics([
      [['penstock_open_groups', {}], 3],
      [['penstock_buffered_items', {}], 3],
      [['penstock_buffered_bytes', {}], bytes],
    ])
    await channel.patch({ batch: { maxItems: 1 } })
    await channel.untilBatches(3)
    await expectMetrics([
      [['penstock_open_groups', {}], 0],
      [['penstock_buffered_items', {}], 0],
      [['penstock_buffered_bytes', {}], 0],
    ])
  })

  /** Shards report their gauges each second. */
  async function expectMetrics(wanted: readonly (readonly [Sample, number])[]): Promise<void> {
    await eventually(
      async () => {
        for (const [[name, labels], value] of wanted)
          expect(await on.installation.metric(name, labels), `${name} ${JSON.stringify(labels)}`).to.equal(
            value,
          )
      },
      { timeoutMs: 15_000, everyMs: 100 },
    )
  }
})
