import { expect } from 'chai'
import { describe, it } from 'mocha'

import { errors, insufficientCredits } from '../../internal/domain/errors.ts'
import { accepted, answers, duplicate, refusal } from '../../internal/ingest/answer.ts'
import { createHttpTelemetry } from '../../internal/telemetry/http-telemetry.ts'
import { createIngestTelemetry } from '../../internal/telemetry/ingest-telemetry.ts'
import { recorder } from './recorder.ts'

const HEAD = { requestId: 'r', projectId: 'p', bufferId: 'b', header: () => undefined }

/** `added`: what it was told, as buffer and reason. */
function refusals() {
  const added: (string | null | undefined)[][] = []
  const add = (bufferId: string | undefined, { reason }: { reason: string | null }) =>
    added.push([bufferId, reason])
  return { add, added }
}

describe('the telemetry of ingest', () => {
  it('tells of a refusal whose buffer it is, but for addresses that name none', () => {
    const { log, meter } = recorder('info')
    const told = refusals()
    const telemetry = createIngestTelemetry(log, meter, told)
    telemetry.answered(answers.bufferDisabled, HEAD)
    telemetry.answered(answers.bufferNotFound, { ...HEAD, bufferId: 'any' })
    telemetry.answered(answers.databaseUnavailable, { ...HEAD, bufferId: 'any' })
    telemetry.answered(answers.tooLarge, null)
    expect(told.added).to.deep.equal([
      ['b', 'Buffer is disabled'],
      [undefined, 'Buffer not found'],
      [undefined, errors.databaseUnavailable.error],
      [undefined, 'Request body is too large'],
    ])
  })

  it('lets each webhook be followed by its request id at the level of debug, and at no other', () => {
    const debug = recorder('debug')
    const info = recorder('info')
    for (const { log, meter } of [debug, info]) {
      const telemetry = createIngestTelemetry(log, meter, refusals())
      telemetry.answered(accepted('m', 'i'), HEAD)
      telemetry.answered(answers.signatureInvalid, HEAD)
    }
    expect(info.lines).to.have.length(0)
    const address = { requestId: 'r', projectId: 'p', bufferId: 'b' }
    const [first, second] = debug.lines
    expect(first).to.include({
      ...address,
      msg: 'webhook accepted',
      messageId: 'm',
      itemId: 'i',
      duplicate: false,
    })
    expect(second).to.include({
      ...address,
      msg: 'webhook refused',
      status: 401,
      reason: 'Invalid signature',
    })
  })

  it('counts answers, late verdicts and what was away', async () => {
    const { log, lines, meter, numbers } = recorder('info')
    const telemetry = createIngestTelemetry(log, meter, refusals())
    const full = refusal(insufficientCredits(0, 1))
    const all = [accepted('m', 'i'), duplicate('m', 'i'), answers.bufferNotFound, full, full]
    for (const answer of all) telemetry.answered(answer, HEAD)
    telemetry.lateVerdict('duplicate')
    telemetry.unavailable('ledger', new Error('connection refused'))
    expect(await numbers()).to.include({
      penstock_ingest_accepted: 2,
      'penstock_ingest_refused{status=404}': 1,
      'penstock_ingest_refused{status=429}': 2,
      'penstock_late_verdicts{outcome=duplicate}': 1,
      'penstock_ingest_unavailable{dependency=ledger}': 1,
    })
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include({ level: 'warn', msg: 'unavailable', dependency: 'ledger' })
    expect(lines[0]?.error).to.include('connection refused')
  })

  it('counts what full holders were refused, and tells once that they are full', async () => {
    const { log, lines, meter, numbers } = recorder('info')
    const telemetry = createIngestTelemetry(log, meter, refusals())
    for (let n = 0; n < 3; n++) telemetry.overShare('buffer')
    telemetry.overShare('customer')
    expect(await numbers()).to.include({
      'penstock_ingest_over_share{holder=buffer}': 3,
      'penstock_ingest_over_share{holder=customer}': 1,
    })
    expect(lines).to.have.length(0)
    telemetry.shareReached({ shard: 2, holder: 'buffer', id: 'u', bytes: 1_100, limit: 1_000 })
    telemetry.shareLeft({ shard: 2, holder: 'buffer', id: 'u' })
    telemetry.shareReached({ shard: 2, holder: 'customer', id: 'c', bytes: 2_100, limit: 2_000 })
    telemetry.shareLeft({ shard: 2, holder: 'customer', id: 'c' })
    expect(lines[0]).to.include({
      level: 'warn',
      msg: 'a buffer holds its whole share',
      shard: 2,
      bytes: 1_100,
    })
    expect(lines[1]).to.include({ level: 'info', msg: 'a buffer has room again', bufferUid: 'u' })
    expect(lines[2]).to.include({ level: 'warn', msg: 'a customer holds its whole share', customerId: 'c' })
    expect(lines[3]).to.include({ level: 'info', msg: 'a customer has room again', customerId: 'c' })
  })

  it('measures stored packs, with one event each', async () => {
    const { log, lines, meter, numbers } = recorder()
    const telemetry = createIngestTelemetry(log, meter, refusals())
    telemetry.batch({ shard: 1, items: 40, bytes: 9_000, ms: 3, attempts: 2 })
    expect(await numbers()).to.include({
      penstock_inbox_items: 40,
      penstock_inbox_bytes: 9_000,
      'penstock_pack_items.count': 1,
      'penstock_inbox_append_duration.sum': 3,
      penstock_inbox_append_retries: 1,
    })
    expect(lines[0]).to.include({ msg: 'pack', shard: 1, items: 40, bytes: 9_000, ms: 3 })
  })

  it('tells of packs that the broker lost', async () => {
    const { log, lines, meter, numbers } = recorder()
    const telemetry = createIngestTelemetry(log, meter, refusals())
    expect(await numbers()).to.include({ penstock_ingest_lost_tails: 0 })
    telemetry.lostPacks({ shard: 1, acknowledged: 12, end: 9 })
    expect(await numbers()).to.include({ penstock_ingest_lost_tails: 1 })
    const msg = 'the broker lost webhooks that it had acknowledged'
    expect(lines[0]).to.include({ level: 'error', msg, shard: 1, acknowledged: 12, end: 9 })
  })
})

describe('the telemetry of the HTTP server', () => {
  it('tells what went wrong behind an answer of 500', async () => {
    const { log, lines, meter, numbers } = recorder('info')
    const event = { requestId: 'r', method: 'GET', path: '/v1/dlq', error: new Error('unforeseen') }
    createHttpTelemetry(log, meter).failed(event)
    expect(await numbers()).to.include({ penstock_http_failures: 1 })
    expect(lines[0]).to.include({ level: 'error', requestId: 'r', method: 'GET', path: '/v1/dlq' })
    expect(lines[0]?.err).to.include({ message: 'unforeseen' })
  })

  it('counts refusals by status', async () => {
    const { log, lines, meter, numbers } = recorder('info')
    const telemetry = createHttpTelemetry(log, meter)
    for (const status of [403, 409, 409]) telemetry.refused(status)
    expect(await numbers()).to.include({
      'penstock_http_refused{status=403}': 1,
      'penstock_http_refused{status=409}': 2,
    })
    expect(lines).to.deep.equal([])
  })
})
