import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { AttemptResult } from '../../internal/delivery/attempt.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import type { BufferRecord, DeliveryConfig } from '../../internal/domain/model.ts'
import { sign } from '../../internal/domain/signature.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { batch, newClient, target } from './fixture.ts'
import { ManualClock } from './manual-clock.ts'

const signedWith = (secret: string): Partial<DeliveryConfig> => ({
  signing: { type: 'hmac-sha256', secret, header: 'x-svc-signature' },
})
const areDelivered = (results: AttemptResult[]) => results.every(({ delivered }) => delivered)

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
  const recordOf = (url: string, more: Partial<DeliveryConfig> = {}, uid = 'u') =>
    ({ uid, buffer: { customerId: 'c', delivery: target(url, more) } }) as BufferRecord
  const unsent = { delivered: false, retryable: true, statusCode: 0, unsent: true, durationMs: 0 }

  it('is withdrawn when it may not proceed, and asked only then', async () => {
    let enabled = true
    let asked = 0
    const record = () => recordOf(sink.url())
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

  it('sends to the path, with the headers and the secret of its turn', async () => {
    let record = recordOf(sink.url('/old'), signedWith('an old secret'))
    const first = client.attempt({ record: () => record, key: 'a', body: batch })
    const second = client.attempt({ record: () => record, key: 'b', body: batch })
    await eventually(() => answers.length === 1)
    record = recordOf(sink.url('/new'), { ...signedWith('a new secret'), headers: { 'x-tier': 'gold' } })
    answers[0]!()
    await eventually(() => answers.length === 2)
    answers[1]!()
    expect(await Promise.all([first, second])).to.satisfy(areDelivered)
    const [, request] = sink.requests()
    expect(request).to.deep.include({ path: '/new' })
    expect(request!.headers).to.include({
      'x-tier': 'gold',
      'x-svc-signature': sign('a new secret', batch),
    })
  })

  describe('when its buffer goes to another origin meanwhile', () => {
    let other: Sink
    let waiting: (() => void)[]

    beforeEach(async () => {
      other = await startSink()
      waiting = []
      other.otherwise(() => new Promise((resolve) => waiting.push(() => resolve({}))))
    })
    afterEach(() => other.close())

    /** The first attempt runs at the old origin, the second one waits there, and then the buffer changes. */
    async function moved(proceed = () => true) {
      let record = recordOf(sink.url())
      const attempt = (key: string) =>
        client.attempt({ record: () => record, key, body: batch, ...(key === 'b' && { proceed }) })
      const both = [attempt('a'), attempt('b')] as const
      await eventually(() => answers.length === 1)
      record = recordOf(other.url())
      return both
    }

    it('waits for a turn there', async () => {
      const busy = client.send(target(other.url()), 'busy', batch)
      await eventually(() => waiting.length === 1)
      const [first, second] = await moved()
      answers[0]!()
      expect(await first).to.include({ delivered: true })
      await eventually(() => client.gauges().waiting === 1 && client.gauges().running === 1)
      waiting[0]!()
      await busy
      await eventually(() => waiting.length === 2)
      waiting[1]!()
      expect(await second).to.include({ delivered: true })
      expect([sink.requests().length, other.requests().length]).to.deep.equal([1, 2])
    })

    it('is asked whether it may proceed when its turn there has come', async () => {
      let asked = 0
      const [first, second] = await moved(() => ++asked < 0)
      expect(asked).to.equal(0)
      answers[0]!()
      await first
      expect(await second).to.include(unsent)
      expect([asked, other.requests().length, client.gauges().running]).to.deep.equal([1, 0, 0])
    })

    it('is unsent when there is no room for it', async () => {
      const sends = ['1', '2', '3'].map((key) =>
        client.send(target(other.url()), key, batch, { flow: 'u', customerId: 'c' }),
      )
      const [first, second] = await moved()
      answers[0]!()
      await first
      expect(await second).to.include(unsent)
      for (let i = 0; i < sends.length; i++) {
        await eventually(() => waiting.length > i)
        waiting[i]!()
      }
      expect(await Promise.all(sends)).to.satisfy(areDelivered)
    })
  })

  it('takes turns with those of other buffers', async () => {
    client = newClient({ clock, limits: { atOnce: 1 } })
    const attempt = (uid: string, key: string) =>
      client.attempt({
        record: () => recordOf(sink.url(), {}, uid),
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
