import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { AttemptResult } from '../../internal/delivery/attempt.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { batch, newClient, target } from './fixture.ts'
import { ManualClock } from './manual-clock.ts'

describe('an attempt that waits for its turn', () => {
  let sink: Sink
  let clock: ManualClock
  let client: DeliveryClient
  let answers: (() => void)[]

  beforeEach(async () => {
    sink = await startSink()
    answers = []
    sink.otherwise(() => new Promise((resolve) => answers.push(() => resolve({}))))
    clock = new ManualClock()
    client = newClient({ clock, limits: { atOnce: 1, waiting: 2 } })
  })
  afterEach(async () => {
    const closed = client.close(0)
    clock.advance(0)
    await closed
    await sink.close()
  })

  const send = (key: string, options = {}) =>
    client.send(target(sink.url()), key, batch, { flow: 'f', ...options })
  const unsent = { delivered: false, retryable: true, statusCode: 0, unsent: true, durationMs: 0 }

  it('is withdrawn when it may not proceed, and asked only then', async () => {
    let enabled = true
    let asked = 0
    const record = { uid: 'u', buffer: { delivery: target(sink.url()) } } as BufferRecord
    const proceed = () => {
      asked++
      return enabled
    }
    const first = client.attempt({ record, key: 'a', body: batch, proceed })
    const second = client.attempt({ record, key: 'b', body: batch, proceed })
    await eventually(() => answers.length === 1)
    expect(asked).to.equal(1)
    enabled = false
    answers[0]!()
    expect(await first).to.include({ delivered: true })
    expect(await second).to.include(unsent)
    expect([asked, sink.requests().length, client.gauges().running]).to.deep.equal([2, 1, 0])
  })

  it('takes turns with those of other buffers', async () => {
    client = newClient({ clock, limits: { atOnce: 1 } })
    const attempt = (uid: string, key: string) =>
      client.attempt({
        record: { uid, buffer: { delivery: target(sink.url()) } } as BufferRecord,
        key,
        body: batch,
      })
    const sends = ['a', 'b', 'c'].map((key) => attempt('busy', key)).concat(attempt('quiet', 'd'))
    for (let i = 0; i < 4; i++) {
      await eventually(() => answers.length > i)
      answers[i]!()
    }
    await Promise.all(sends)
    expect(sink.requests().map((request) => request.headers['x-idempotency-key'])).to.deep.equal([
      'a',
      'b',
      'd',
      'c',
    ])
  })

  it('is refused when the queue is full, while those before it are served', async () => {
    const sends = ['a', 'b', 'c', 'd'].map((key) => send(key))
    expect(await sends[3]).to.include(unsent)
    expect(client.gauges()).to.include({ running: 1, waiting: 2 })
    for (let i = 0; i < 3; i++) {
      await eventually(() => answers.length > i)
      answers[i]!()
    }
    expect((await Promise.all(sends.slice(0, 3))).map((result) => result.delivered)).to.deep.equal([
      true,
      true,
      true,
    ])
    expect(sink.requests().map((request) => request.headers['x-idempotency-key'])).to.deep.equal([
      'a',
      'b',
      'c',
    ])
  })

  it('waits no longer than it was told', async () => {
    const first = send('a', { maxWaitMs: 5_000 })
    const second = send('b', { maxWaitMs: 5_000 })
    await eventually(() => answers.length === 1)
    clock.advance(5_000)
    expect(await second).to.include(unsent)
    answers[0]!()
    expect(await first).to.include({ delivered: true, durationMs: 5_000 })
    expect([sink.requests().length, clock.pending]).to.deep.equal([1, 0])
  })

  describe('when the client is closed', () => {
    it('is unsent at once, while what runs may end', async () => {
      const running = send('a')
      const waiting = send('b')
      await eventually(() => answers.length === 1)
      const closed = client.close()
      expect([await waiting, await send('c')].map((result) => result.unsent)).to.deep.equal([true, true])
      answers[0]!()
      expect(await running).to.include({ delivered: true })
      await closed
      await sink.waitFor((requests, open) => requests.length === 1 && open === 0)
      expect(clock.pending).to.equal(0)
    })

    it('cuts what does not end in time', async () => {
      const running = send('a')
      await eventually(() => answers.length === 1)
      let result: AttemptResult | undefined
      running.then((value) => {
        result = value
      })
      const closed = client.close(3_000)
      clock.advance(2_999)
      await new Promise(setImmediate)
      expect(result).to.equal(undefined)
      clock.advance(1)
      await closed
      expect(await running).to.include({
        delivered: false,
        errorClass: 'connection',
        error: 'the service is stopping',
      })
      await sink.waitFor((_, open) => open === 0)
      expect(client.gauges()).to.deep.equal({ origins: 0, running: 0, waiting: 0, idleConnections: 0 })
    })
  })
})
