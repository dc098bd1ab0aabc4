/** Owners on the real NATS and Postgres: what a claim takes over, what a stale owner can no longer do. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import type { Broker, LogMessage } from '../../internal/shard/broker.ts'
import { FencedError } from '../../internal/shard/ports.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import {
  holdingCommits,
  ingest,
  journalRecords,
  numbersOf,
  type Owner,
  type OwnerOptions,
  startOwner,
} from './real-owner.ts'

describe('shard ownership, real broker and database', function () {
  this.timeout(60_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  let owners: Owner[]

  beforeEach(async () => {
    nats = await brokerAt((await natsAccount()).url)
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
    owners = []
  })

  afterEach(async () => {
    await Promise.all(owners.map(({ shard }) => shard.abandon()))
    await nats.close()
    await db.end({ timeout: 2 })
  })

  async function own(options: Partial<OwnerOptions> = {}): Promise<Owner> {
    const owner = startOwner({ broker: nats.broker, db, buffer, ...options })
    owners.push(owner)
    await owner.shard.start()
    await eventually(() => owner.shard.state === 'running')
    return owner
  }

  const allDone = (count: number) =>
    eventually(async () => {
      const records = await journalRecords(nats.broker)
      expect(records.filter(({ record }) => record.type === 'done').length).to.equal(count)
    })

  it('delivers what was ingested in order and writes seal before done', async () => {
    const owner = await own()
    await ingest(
      nats.broker,
      buffer,
      [1, 2, 3, 4].map((n) => ({ key: 'a', n })),
    )
    await allDone(2)
    expect(owner.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([1, 2, 3, 4])
    const types = (await journalRecords(nats.broker)).map(({ record }) => record.type)
    expect(types.filter((type) => type === 'seal' || type === 'done')).to.deep.equal([
      'seal',
      'done',
      'seal',
      'done',
    ])
  })

  it('names a batch by the sequence of its sealing commit', async () => {
    const owner = await own()
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }])
    await allDone(1)
    const seal = (await journalRecords(nats.broker)).find(({ record }) => record.type === 'seal')
    expect(owner.sent[0]?.key).to.match(new RegExp(`^grp:[\\w-]{22}:v${seal?.seq}$`))
  })

  it('takes over a sealed batch: same body, same key, and nothing new before it', async () => {
    let release: (status: number) => void = () => {}
    const first = await own({ destination: () => new Promise<number>((resolve) => (release = resolve)) })
    await ingest(
      nats.broker,
      buffer,
      [1, 2, 3].map((n) => ({ key: 'a', n })),
    )
    await eventually(() => first.sent.length === 1)
    const second = await own()
    await ingest(nats.broker, buffer, [{ key: 'a', n: 4 }])
    await allDone(2)
    expect(second.sent[0]).to.deep.equal(first.sent[0])
    expect(second.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([1, 2, 3, 4])
    release(200)
    await eventually(() => first.ended instanceof FencedError)
    const byFirst = (await journalRecords(nats.broker)).filter(({ boot }) => boot === first.boot)
    expect(byFirst.map(({ record }) => record.type)).to.not.include('done')
  })

  it('keeps the attempt count over a take-over', async () => {
    const first = await own({ destination: () => 500, maxAttempts: 3 })
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }])
    await eventually(() => first.sent.length === 2)
    await first.shard.abandon()
    const second = await own({ destination: () => 500, maxAttempts: 3 })
    await eventually(async () => {
      const [row] = await db<{ attempt: number; reason: string }[]>`SELECT attempt, reason FROM dlq_items`
      expect(row).to.include({ attempt: 2, reason: 'max_retries_exceeded' })
    })
    // Attempt 2 may have been in flight: then it is repeated, never more.
    expect(first.sent.length + second.sent.length).to.be.within(3, 4)
    expect(new Set([...first.sent, ...second.sent].map(({ key, body }) => key + body)).size).to.equal(1)
  })

  it('refuses a stale owner at every point: seal, attempt, done, dead, drop, horizon', async () => {
    const stops: Record<string, (stale: Owner) => Promise<unknown>> = {
      seal: () => ingest(nats.broker, buffer, [{ key: 'a', n: 1 }]),
      drop: async () => {
        await ingest(nats.broker, buffer, [{ key: 'twins', n: 1, messageId: 'm' }])
        await ingest(nats.broker, buffer, [{ key: 'twins', n: 2, messageId: 'm' }])
      },
      horizon: (stale) => stale.shard.housekeep(),
    }
    for (const [point, act] of Object.entries(stops)) {
      const stale = await own({ housekeeping: { everyMs: 60_000 } })
      await ingest(nats.broker, buffer, [{ key: `before-${point}`, n: 0 }])
      await eventually(async () => {
        const done = (await journalRecords(nats.broker)).filter(
          ({ boot, record }) => boot === stale.boot && record.type === 'done',
        )
        expect(done.length).to.be.above(0)
      })
      const current = await own({ housekeeping: { everyMs: 60_000 } })
      await act(stale)
      await eventually(() => stale.ended instanceof FencedError)
      const records = await journalRecords(nats.broker)
      const claim = records.findLast(({ boot, record }) => boot === current.boot && record.type === 'epoch')!
      const late = records.filter(({ boot, seq }) => boot === stale.boot && seq > claim.seq)
      expect(late, point).to.deep.equal([])
      await current.shard.abandon()
    }
    for (const status of [200, 400, 500]) {
      let release: (answer: number) => void = () => {}
      const stale = await own({
        destination: () => new Promise<number>((resolve) => (release = resolve)),
        maxAttempts: 2,
      })
      await ingest(nats.broker, buffer, [{ key: `held-${status}`, n: status }])
      await eventually(() => stale.sent.length > 0)
      const current = await own()
      release(status)
      await eventually(() => stale.ended instanceof FencedError)
      const records = await journalRecords(nats.broker)
      const claim = records.findLast(({ boot, record }) => boot === current.boot && record.type === 'epoch')!
      expect(records.filter(({ boot, seq }) => boot === stale.boot && seq > claim.seq)).to.deep.equal([])
      await current.shard.abandon()
    }
    const [{ count } = { count: -1 }] = await db<
      { count: number }[]
    >`SELECT count(*)::int AS count FROM dlq_items`
    expect(count, 'no dead letter of a stale owner').to.equal(0)
  })

  it('refuses the Postgres writes of an old epoch', async () => {
    const stale = await own()
    const fence = { shard: 0, epoch: stale.shard.epoch }
    const current = await own()
    // Shards do not wait for Postgres to know their epoch: only what needs the fence does.
    await eventually(async () => {
      const [row] = await db<{ epoch: number }[]>`SELECT epoch FROM shards WHERE shard = 0`
      expect(row?.epoch).to.equal(current.shard.epoch)
    })
    const letters = createDeadLetters(db)
    const refused = async (write: Promise<unknown>) => {
      const error = await write.then(
        () => null,
        (reason: unknown) => reason,
      )
      expect(error).to.be.instanceOf(FencedError)
    }
    await refused(letters.raiseEpoch(fence))
    await refused(letters.bury(fence, deadBatch(buffer)))
    await refused(letters.known(fence, [{ groupId: 'g', version: 1 }]))
    await refused(createProjection(db).project(fence, fence.epoch + 1, []))
  })

  it('is not harmed by reading twice', async () => {
    const twice: Broker = {
      ...nats.broker,
      inbox: (shard) => {
        const log = nats.broker.inbox(shard)
        const seen: LogMessage[] = []
        return {
          ...{ append: log.append.bind(log), state: log.state.bind(log), get: log.get.bind(log) },
          ...{ last: log.last.bind(log), range: log.range.bind(log), purgeBelow: log.purgeBelow.bind(log) },
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
    const owner = await own({ broker: twice })
    for (let n = 1; n <= 9; n++) await ingest(nats.broker, buffer, [{ key: 'a', n }])
    await eventually(() => expect(owner.sent.flatMap(({ body }) => numbersOf(body))).to.have.length(9))
    expect(owner.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(owner.ended).to.equal(null)
  })

  it('buffers four times its memory budget and reads again what it dropped', async () => {
    const payloadBudget = 256 * 1024
    const owner = await own({
      payloadBudget,
      batch: { maxItems: 50, idleTimeoutMs: 60_000, maxWaitFromFirstMs: 1_500 },
    })
    let n = 0
    for (let pack = 0; pack < 64; pack++) {
      await ingest(
        nats.broker,
        buffer,
        [0, 1, 2, 3].map((key) => ({ key: `k${key}`, n: ++n, pad: 4_096 })),
      )
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
    const owner = await own(options)
    await ingest(nats.broker, buffer, [{ key: 'slow', n: 0, pad: 500 }])
    let n = 0
    for (let round = 0; round < 60; round++) {
      await ingest(
        nats.broker,
        buffer,
        [0, 1, 2, 3, 4].map(() => ({ key: 'busy', n: ++n, pad: 500 })),
      )
      if (round % 20 === 19) await ingest(nats.broker, buffer, [{ key: 'slow', n: -round }])
    }
    await eventually(async () => {
      const types = new Set((await journalRecords(nats.broker)).map(({ record }) => record.type))
      expect([...types]).to.include.members(['snapshot-end'])
      expect((await nats.broker.inbox(0).state()).messages).to.be.below(10)
      expect((await nats.broker.journal(0).state()).messages).to.be.below(60)
    })
    // Whoever claims now finds the held items in the journal alone.
    await owner.shard.abandon()
    const second = await own(options)
    await ingest(nats.broker, buffer, [{ key: 'slow', n: 100 }])
    await eventually(() =>
      expect(second.sent.map(({ body }) => numbersOf(body))).to.deep.equal([[0, -19, -39, -59, 100]]),
    )
    expect([...owner.problems, ...second.problems]).to.deep.equal([])
  })

  it('hands over in good order: nothing is sent twice, a release record is written', async () => {
    const first = await own()
    for (let n = 1; n <= 30; n++) await ingest(nats.broker, buffer, [{ key: `k${n % 3}`, n }])
    await first.shard.stop(10_000)
    const second = await own()
    await eventually(() => {
      const numbers = [...first.sent, ...second.sent].flatMap(({ body }) => numbersOf(body))
      expect(numbers.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 30 }, (_, index) => index + 1))
    })
    const types = (await journalRecords(nats.broker))
      .filter(({ boot }) => boot === first.boot)
      .map(({ record }) => record.type)
    expect(types.at(-1)).to.equal('release')
  })

  it('hands a running attempt over: its result counts there, and its group waits while all others go on', async () => {
    for (const status of [200, 500]) {
      let answer: (status: number) => void = () => {}
      const first = await own({ destination: () => new Promise<number>((resolve) => (answer = resolve)) })
      await ingest(nats.broker, buffer, [{ key: `slow-${status}`, n: 1 }])
      await eventually(() => first.sent.length === 1)
      let released = false
      const over = first.shard.handOver(10_000, () => {
        released = true
      })
      await eventually(() => released)
      const second = await own()
      await ingest(nats.broker, buffer, [{ key: `slow-${status}`, n: 2 }])
      await ingest(nats.broker, buffer, [{ key: `other-${status}`, n: 3 }])
      await eventually(() => expect(second.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([3]))
      answer(status)
      await over
      const repeated = status === 200 ? [] : [1]
      await eventually(() =>
        expect(second.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([3, ...repeated, 2]),
      )
      if (status === 500) expect(second.sent[1]).to.deep.equal(first.sent[0])
      const records = await journalRecords(nats.broker)
      const byFirst = records.filter(({ boot }) => boot === first.boot).map(({ record }) => record.type)
      expect(byFirst).to.include('seal').and.not.include('done').and.not.include('attempt')
      await second.shard.stop(10_000)
      const attempts = (await journalRecords(nats.broker)).filter(({ boot }) => boot === second.boot)
      expect(attempts.some(({ record }) => record.type === 'attempt')).to.equal(status === 500)
      expect([...first.problems, ...second.problems]).to.deep.equal([])
    }
  })

  it('hands a running attempt over to one that does not know its buffer yet: the result waits for that', async () => {
    for (const status of [200, 500]) {
      let answer: (status: number) => void = () => {}
      const first = await own({ destination: () => new Promise<number>((resolve) => (answer = resolve)) })
      await ingest(nats.broker, buffer, [{ key: `slow-${status}`, n: 1 }])
      await eventually(() => first.sent.length === 1)
      let released = false
      const over = first.shard.handOver(10_000, () => {
        released = true
      })
      await eventually(() => released)
      const { promise: configured, resolve: configure } = Promise.withResolvers<void>()
      const second = await own({ configured })
      await ingest(nats.broker, buffer, [{ key: `slow-${status}`, n: 2 }])
      answer(status)
      await over
      configure()
      const repeated = status === 200 ? [] : [1]
      await eventually(() =>
        expect(second.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([...repeated, 2]),
      )
      await second.shard.stop(10_000)
      expect(await db`SELECT version FROM dlq_items`).to.have.length(0)
      expect([second.ended, ...first.problems, ...second.problems]).to.deep.equal([null])
    }
  })

  it('stops while a seal is on its way: the next owner need not wait for an attempt that never began', async () => {
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const first = await own({
      broker: holdingCommits(nats.broker, async ({ records }) => {
        if (!records.some(({ type }) => type === 'seal')) return
        reach()
        await opened
      }),
    })
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }])
    await reached
    const stopped = first.shard.stop(10_000)
    open()
    await stopped
    expect(first.sent).to.deep.equal([])
    const records = (await journalRecords(nats.broker)).map(({ record }) => record)
    expect(records.filter(({ type }) => type === 'seal')).to.have.length(1)
    expect(records.at(-1)).to.deep.equal({ type: 'release', batches: [] })
  })

  it('hands over what did not begin yet, too', async () => {
    const answers: ((status: number) => void)[] = []
    const first = await own({
      destination: () => new Promise<number>((resolve) => answers.push(resolve)),
      attemptsPerBuffer: 1,
    })
    for (const key of ['a', 'b']) await ingest(nats.broker, buffer, [{ key, n: 1 }])
    await eventually(async () => {
      const seals = (await journalRecords(nats.broker)).filter(({ record }) => record.type === 'seal')
      expect(seals).to.have.length(2)
    })
    expect(first.sent).to.have.length(1)
    const over = first.shard.handOver(10_000, () => {})
    await eventually(() => first.shard.state === 'ended')
    const second = await own()
    answers[0]!(200)
    await over
    await eventually(() => expect(second.sent).to.have.length(1))
    expect(second.sent[0]!.key).to.not.equal(first.sent[0]!.key)
    await allDone(2)
    expect(first.sent).to.have.length(1)
  })
})
