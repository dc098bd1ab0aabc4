/** Owners on the real NATS and Postgres: what a claim takes over, what a stale owner can no longer do. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import type { Broker, LogMessage } from '../../internal/shard/broker.ts'
import { FencedError } from '../../internal/shard/ports.ts'
import { commitAt } from '../support/commit-names.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { eventually } from '../support/eventually.ts'
import { countingGets } from './hindered-brokers.ts'
import { ownersOfEachTest } from './owners.ts'
import { numbersOf, type Owner } from './real-owner.ts'

describe('shard ownership, real broker and database', function () {
  this.timeout(120_000)
  const here = ownersOfEachTest()

  it('delivers what was ingested in order and writes seal before done', async () => {
    const owner = await here.own()
    await here.ingest([1, 2, 3, 4].map((n) => ({ key: 'a', n })))
    await here.done(2)
    expect(owner.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([1, 2, 3, 4])
    const types = (await here.records()).map(({ record }) => record.type)
    expect(types.filter((type) => type === 'seal' || type === 'done')).to.deep.equal([
      'seal',
      'done',
      'seal',
      'done',
    ])
  })

  it('names a batch by the sequence of its sealing commit', async () => {
    const owner = await here.own()
    await here.ingest([{ key: 'a', n: 1 }])
    await here.done(1)
    const seal = (await here.records()).find(({ record }) => record.type === 'seal')
    expect(owner.sent[0]?.key).to.match(new RegExp(`^grp:[\\w-]{22}:v${seal?.seq}$`))
  })

  it('takes over a sealed batch: same body, same key, and nothing new before it', async () => {
    let release: (status: number) => void = () => {}
    const first = await here.own({ destination: () => new Promise<number>((resolve) => (release = resolve)) })
    await here.ingest([1, 2, 3].map((n) => ({ key: 'a', n })))
    await eventually(() => first.sent.length === 1)
    const second = await here.own()
    await here.ingest([{ key: 'a', n: 4 }])
    await here.done(2)
    expect(second.sent[0]).to.deep.equal(first.sent[0])
    expect(second.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([1, 2, 3, 4])
    release(200)
    await eventually(() => first.ended instanceof FencedError)
    const byFirst = (await here.records()).filter(({ boot }) => boot === first.boot)
    expect(byFirst.map(({ record }) => record.type)).to.not.include('done')
  })

  it('keeps the attempt count over a take-over', async () => {
    const first = await here.own({ destination: () => 500, maxAttempts: 3 })
    await here.ingest([{ key: 'a', n: 1 }])
    await eventually(() => first.sent.length === 2)
    await first.shard.abandon()
    const second = await here.own({ destination: () => 500, maxAttempts: 3 })
    await eventually(async () => {
      const [row] = await here.db<
        { attempt: number; reason: string }[]
      >`SELECT attempt, reason FROM dlq_items`
      expect(row).to.include({ attempt: 2, reason: 'max_retries_exceeded' })
    })
    // Attempt 2 may have been in flight: then it is repeated, never more.
    expect(first.sent.length + second.sent.length).to.be.within(3, 4)
    expect(new Set([...first.sent, ...second.sent].map(({ key, body }) => key + body)).size).to.equal(1)
  })

  it('refuses a stale owner at every point: seal, attempt, done, dead, drop, horizon', async () => {
    const stops: Record<string, (stale: Owner) => Promise<unknown>> = {
      seal: () => here.ingest([{ key: 'a', n: 1 }]),
      drop: async () => {
        await here.ingest([{ key: 'duplicates', n: 1, messageId: 'm' }])
        await here.ingest([{ key: 'duplicates', n: 2, messageId: 'm' }])
      },
      horizon: (stale) => stale.shard.housekeep(),
    }
    for (const [point, act] of Object.entries(stops)) {
      const stale = await here.own({ housekeeping: { everyMs: 60_000 } })
      await here.ingest([{ key: `before-${point}`, n: 0 }])
      await eventually(async () => {
        const done = (await here.records()).filter(
          ({ boot, record }) => boot === stale.boot && record.type === 'done',
        )
        expect(done.length).to.be.above(0)
      })
      const current = await here.own({ housekeeping: { everyMs: 60_000 } })
      await act(stale)
      await eventually(() => stale.ended instanceof FencedError)
      const records = await here.records()
      const claim = records.findLast(({ boot, record }) => boot === current.boot && record.type === 'epoch')!
      const late = records.filter(({ boot, seq }) => boot === stale.boot && seq > claim.seq)
      expect(late, point).to.deep.equal([])
      await current.shard.abandon()
    }
    for (const status of [200, 400, 500]) {
      let release: (answer: number) => void = () => {}
      const stale = await here.own({
        destination: () => new Promise<number>((resolve) => (release = resolve)),
        maxAttempts: 2,
      })
      await here.ingest([{ key: `held-${status}`, n: status }])
      await eventually(() => stale.sent.length > 0)
      const current = await here.own()
      release(status)
      await eventually(() => stale.ended instanceof FencedError)
      const records = await here.records()
      const claim = records.findLast(({ boot, record }) => boot === current.boot && record.type === 'epoch')!
      expect(records.filter(({ boot, seq }) => boot === stale.boot && seq > claim.seq)).to.deep.equal([])
      await current.shard.abandon()
    }
    const [{ count } = { count: -1 }] = await here.db<
      { count: number }[]
    >`SELECT count(*)::int AS count FROM dlq_items`
    expect(count, 'no dead letter of a stale owner').to.equal(0)
  })

  it('refuses the Postgres writes of an old epoch', async () => {
    const stale = await here.own()
    const fence = { shard: 0, epoch: stale.shard.epoch }
    const current = await here.own()
    // Shards do not wait for Postgres to know their epoch: only what needs the fence does.
    await eventually(async () => {
      const [row] = await here.db<{ epoch: number }[]>`SELECT epoch FROM shards WHERE shard = 0`
      expect(row?.epoch).to.equal(current.shard.epoch)
    })
    const letters = createDeadLetters(here.db)
    const refused = async (write: Promise<unknown>) => {
      const error = await write.then(
        () => null,
        (reason: unknown) => reason,
      )
      expect(error).to.be.instanceOf(FencedError)
    }
    await refused(letters.raiseEpoch(fence))
    await refused(letters.write(fence, deadBatch(here.buffer)))
    await refused(letters.known(fence, [{ groupId: 'g', version: 1 }]))
    await refused(createProjection(here.db).project(fence, commitAt(fence.epoch + 1), []))
  })

  it('is not harmed by reading twice', async () => {
    const twice: Broker = {
      ...here.broker,
      inbox: (shard) => {
        const log = here.broker.inbox(shard)
        const seen: LogMessage[] = []
        return {
          append: log.append.bind(log),
          state: log.state.bind(log),
          get: log.get.bind(log),
          last: log.last.bind(log),
          range: log.range.bind(log),
          purgeBelow: log.purgeBelow.bind(log),
          follow: (from, handler, onError) =>
            log.follow(
              from,
              async (messages) => {
                seen.push(...messages)
                await handler(messages)
                await handler(seen)
              },
              onError,
            ),
        }
      },
    }
    const owner = await here.own({ broker: twice })
    for (let n = 1; n <= 9; n++) await here.ingest([{ key: 'a', n }])
    await eventually(() => expect(owner.sent.flatMap(({ body }) => numbersOf(body))).to.have.length(9))
    expect(owner.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(owner.ended).to.equal(null)
  })

  it('buffers four times its memory budget and reads again what it dropped', async () => {
    const payloadBudget = 256 * 1024
    const owner = await here.own({
      payloadBudget,
      batch: { maxItems: 50, idleTimeoutMs: 60_000, maxWaitFromFirstMs: 1_500 },
    })
    let n = 0
    for (let pack = 0; pack < 64; pack++) {
      await here.ingest([0, 1, 2, 3].map((key) => ({ key: `k${key}`, n: ++n, pad: 4_096 })))
    }
    await eventually(() => owner.gauges.bufferedItems > 0)
    expect(owner.gauges.residentBytes).to.be.at.most(payloadBudget)
    await eventually(() => expect(owner.sent.flatMap(({ body }) => numbersOf(body))).to.have.length(256), {
      timeoutMs: 20_000,
    })
    const order = (key: number) =>
      owner.sent.flatMap(({ body }) => numbersOf(body)).filter((each) => (each - 1) % 4 === key)
    for (const key of [0, 1, 2, 3]) expect(order(key)).to.deep.equal([...order(key)].sort((a, b) => a - b))
    expect(owner.problems).to.deep.equal([])
  })

  it('gives up the payloads of what waits for long, and reads each message once when all of it is due', async () => {
    const read: number[] = []
    const owner = await here.own({
      broker: countingGets(here.broker, (seq) => read.push(seq)),
      payloadMs: 1_000,
      batch: { maxItems: 50, idleTimeoutMs: 8_000, maxWaitFromFirstMs: 8_000 },
    })
    const seq = await here.ingest(['a', 'b', 'c', 'd'].map((key, n) => ({ key, n })))
    await eventually(() => expect(owner.gauges).to.include({ bufferedItems: 4, residentBytes: 0 }))
    expect(owner.sent).to.deep.equal([])
    await eventually(() => {
      const numbers = owner.sent.map(({ body }) => numbersOf(body))
      expect(numbers).to.have.deep.members([[0], [1], [2], [3]])
    })
    expect(read).to.deep.equal([seq])
    expect(owner.problems).to.deep.equal([])
  })

  it('keeps both logs short: keep, horizon, snapshot and purges, with one group held for long', async () => {
    const housekeeping = {
      everyMs: 50,
      purgeLagMs: 300,
      keepBytes: 20_000,
      keepRatio: 1,
      snapshotBytes: 10_000,
    }
    const options = {
      housekeeping,
      payloadBudget: 50_000,
      batch: { maxItems: 5, idleTimeoutMs: 60_000, maxWaitFromFirstMs: 60_000 },
    }
    const owner = await here.own(options)
    await here.ingest([{ key: 'slow', n: 0, pad: 500 }])
    let n = 0
    for (let round = 0; round < 60; round++) {
      await here.ingest([0, 1, 2, 3, 4].map(() => ({ key: 'busy', n: ++n, pad: 500 })))
      if (round % 20 === 19) await here.ingest([{ key: 'slow', n: -round }])
    }
    await eventually(async () => {
      expect(await here.snapshots()).not.to.deep.equal([])
      expect((await here.broker.inbox(0).state()).messages).to.be.below(10)
      expect((await here.broker.journal(0).state()).messages).to.be.below(60)
    })
    // Whoever claims now finds the held items in the journal alone.
    await owner.shard.abandon()
    const second = await here.own(options)
    await here.ingest([{ key: 'slow', n: 100 }])
    await eventually(() =>
      expect(second.sent.map(({ body }) => numbersOf(body))).to.deep.equal([[0, -19, -39, -59, 100]]),
    )
    expect([...owner.problems, ...second.problems]).to.deep.equal([])
  })
})
