import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { ShardTelemetry } from '../../internal/shard/ports.ts'
import { createShardTelemetry } from '../../internal/telemetry/shard-telemetry.ts'
import { recorder } from './recorder.ts'

type Delivery = Parameters<ShardTelemetry['delivery']>[0]

const batch = { shard: 3, groupId: 'g', bufferId: 'b', version: 9 }
const delivered: Delivery = {
  ...batch,
  attempt: 0,
  outcome: 'delivered',
  statusCode: 200,
  errorClass: null,
  error: null,
  durationMs: 12,
  items: 5,
  sampled: false,
}
const failed: Delivery = {
  ...delivered,
  outcome: 'retry',
  statusCode: 500,
  errorClass: 'http_5xx',
  error: 'HTTP 500',
}

describe('the telemetry of shards', () => {
  it('counts batches by what closed them, with size and lateness', async () => {
    const { log, lines, meter, numbers } = recorder()
    const telemetry = createShardTelemetry(log, meter)
    telemetry.flush({ ...batch, reason: 'items', items: 50, payloadBytes: 900, latenessMs: -2, segment: 0 })
    telemetry.flush({ ...batch, reason: 'idle', items: 2, payloadBytes: 90, latenessMs: 7, segment: 0 })
    telemetry.flush({ ...batch, reason: 'idle', items: 1, payloadBytes: 9, latenessMs: 1, segment: 0 })
    expect(await numbers()).to.include({
      'penstock_flushes{reason=items}': 1,
      'penstock_flushes{reason=idle}': 2,
      'penstock_batch_items.sum': 53,
      'penstock_flush_lateness.count': 3,
      'penstock_flush_lateness.sum': 8,
    })
    expect(lines[0]).to.include({
      level: 'debug',
      msg: 'flush',
      shard: 3,
      version: 9,
      reason: 'items',
      items: 50,
    })
  })

  it('counts deliveries and failures, and their duration', async () => {
    const { log, meter, numbers } = recorder()
    const telemetry = createShardTelemetry(log, meter)
    for (const event of [delivered, delivered, failed]) telemetry.delivery(event)
    expect(await numbers()).to.include({
      'penstock_deliveries{outcome=delivered}': 2,
      'penstock_deliveries{outcome=retry}': 1,
      'penstock_delivery_failures{class=http_5xx}': 1,
      'penstock_delivery_duration.sum': 36,
    })
  })

  it('tells of sampled successes and of every failure, at the usual level', () => {
    const { log, lines, meter } = recorder('info')
    const telemetry = createShardTelemetry(log, meter)
    telemetry.delivery(delivered)
    telemetry.delivery({ ...delivered, sampled: true, version: 10 })
    telemetry.delivery({ ...failed, version: 11 })
    telemetry.delivery({ ...failed, outcome: 'exhausted', version: 12 })
    expect(lines.map(({ level, msg, version }) => [level, msg, version])).to.deep.equal([
      ['info', 'delivery', 10],
      ['warn', 'delivery', 11],
      ['warn', 'delivery', 12],
    ])
    expect(lines[1]).to.include({ statusCode: 500, errorClass: 'http_5xx', error: 'HTTP 500', attempt: 0 })
  })

  it('tells of dead and discarded batches, and counts duplicates', async () => {
    const { log, lines, meter, numbers } = recorder('info')
    const telemetry = createShardTelemetry(log, meter)
    const reason = 'consecutive_dead_letters'
    telemetry.dead({ ...batch, reason: 'max_retries_exceeded', items: 5, dlqId: 'd', paused: true })
    telemetry.paused({ bufferId: 'b', bufferUid: 'u', reason, dlqId: 'd' })
    telemetry.discarded({ shard: 3, bufferId: 'b', items: 8 })
    telemetry.dropped({ shard: 3, duplicates: 4 })
    expect(await numbers()).to.include({
      'penstock_dead_letters{reason=max_retries_exceeded}': 1,
      'penstock_buffer_pauses{reason=consecutive_dead_letters}': 1,
      penstock_discarded_items: 8,
      penstock_duplicates: 4,
    })
    expect(lines.map(({ msg }) => msg)).to.deep.equal(['dead', 'buffer paused', 'discarded'])
  })

  it('shows the last state of each shard', async () => {
    const { log, meter, numbers } = recorder()
    const telemetry = createShardTelemetry(log, meter)
    const state = { openGroups: 2, bufferedItems: 30, bufferedBytes: 400, residentBytes: 40 }
    telemetry.gauges({ shard: 0, epoch: 5, ...state })
    telemetry.gauges({ shard: 1, epoch: 8, ...state })
    telemetry.gauges({ shard: 0, epoch: 6, ...state, bufferedItems: 31 })
    expect(await numbers()).to.include({
      'penstock_shard_epoch{shard=0}': 6,
      'penstock_shard_epoch{shard=1}': 8,
      'penstock_buffered_items{shard=0}': 31,
      'penstock_buffered_bytes{shard=1}': 400,
      'penstock_open_groups{shard=1}': 2,
      'penstock_resident_bytes{shard=1}': 40,
    })
  })

  it('shows zeros of a shard that went to another node', async () => {
    const { log, meter, numbers } = recorder()
    const telemetry = createShardTelemetry(log, meter)
    const state = { openGroups: 2, bufferedItems: 30, bufferedBytes: 400, residentBytes: 40 }
    for (const shard of [0, 1]) telemetry.gauges({ shard, epoch: 5, ...state })
    expect(await numbers()).to.include({ 'penstock_buffered_items{shard=0}': 30 })
    telemetry.ownership({ shard: 0, epoch: 5, state: 'released' })
    telemetry.ownership({ shard: 2, epoch: 5, state: 'released' })
    const after = await numbers()
    expect(after).to.include({
      'penstock_shard_epoch{shard=0}': 0,
      'penstock_buffered_items{shard=0}': 0,
      'penstock_buffered_items{shard=1}': 30,
    })
    expect(after).not.to.have.property('penstock_buffered_items{shard=2}')
  })

  it('shows zeros of a shard whose claim ended, however it ended', async () => {
    const { log, meter, numbers } = recorder()
    const telemetry = createShardTelemetry(log, meter)
    const state = { openGroups: 2, bufferedItems: 30, bufferedBytes: 400, residentBytes: 40 }
    const ends = ['released', 'fenced', 'failed', 'abandoned']
    for (const [shard, end] of ends.entries()) {
      telemetry.gauges({ shard, epoch: 5, ...state })
      telemetry.ownership({ shard, epoch: 5, state: end })
    }
    telemetry.gauges({ shard: 9, epoch: 5, ...state })
    telemetry.ownership({ shard: 9, epoch: 5, state: 'draining' })
    const shown = await numbers()
    for (const shard of ends.keys()) expect(shown).to.include({ [`penstock_shard_epoch{shard=${shard}}`]: 0 })
    expect(shown).to.include({ 'penstock_shard_epoch{shard=9}': 5 })
  })

  it('tells of ownership and problems, and measures replay and commits', async () => {
    const { log, lines, meter, numbers } = recorder('info')
    const telemetry = createShardTelemetry(log, meter)
    telemetry.ownership({ shard: 3, epoch: 7, state: 'serving', replayMs: 40 })
    telemetry.ownership({ shard: 3, epoch: 7, state: 'quarantined', error: 'a broken record' })
    telemetry.problem({ shard: 3, what: 'rebuild', error: 'hash', detail: { version: 9 } })
    telemetry.commit({ shard: 3, ms: 4, records: 20, bytes: 1_000 })
    expect(lines.map(({ level, msg }) => [level, msg])).to.deep.equal([
      ['info', 'ownership'],
      ['error', 'ownership'],
      ['error', 'problem'],
    ])
    expect(await numbers()).to.include({
      'penstock_ownership_changes{state=serving}': 1,
      'penstock_replay_duration.sum': 40,
      'penstock_journal_append_duration.sum': 4,
      'penstock_journal_commit_records.sum': 20,
      penstock_journal_bytes: 1_000,
      penstock_problems: 1,
    })
  })
})
