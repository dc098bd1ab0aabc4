/** How an owner lets go of its shard, on the real NATS and Postgres: what runs, what did not begin, what is on its way. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { FencedError } from '../../internal/shard/ports.ts'
import { eventually } from '../support/eventually.ts'
import { holdingCommits, holdingProvenClaims, muting } from './hindered-brokers.ts'
import { ownersOfEachTest } from './owners.ts'
import { numbersOf, type OwnerOptions } from './real-owner.ts'

describe('a hand-over of a shard, real broker and database', function () {
  this.timeout(120_000)
  const here = ownersOfEachTest()

  /** An owner that has let go of its shard in the midst of an attempt, which `answer` ends; then `over` resolves. */
  async function releasedInAttempt(key: string, options: Partial<OwnerOptions> = {}) {
    const { promise: answered, resolve: answer } = Promise.withResolvers<number>()
    const first = await here.own({ ...options, destination: () => answered })
    await here.ingest([{ key, n: 1 }])
    await eventually(() => first.sent.length === 1)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const over = first.shard.handOver(20_000, release)
    await released
    return { first, over, answer }
  }

  it('hands over in good order: nothing is sent twice, a release record is written', async () => {
    const first = await here.own()
    for (let n = 1; n <= 30; n++) await here.ingest([{ key: `k${n % 3}`, n }])
    await first.shard.stop(10_000)
    const second = await here.own()
    await eventually(() => {
      const numbers = [...first.sent, ...second.sent].flatMap(({ body }) => numbersOf(body))
      expect(numbers.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 30 }, (_, index) => index + 1))
    })
    const types = (await here.records())
      .filter(({ boot }) => boot === first.boot)
      .map(({ record }) => record.type)
    expect(types.at(-1)).to.equal('release')
  })

  it('hands a running attempt over: its result counts there, and its group waits while all others go on', async () => {
    for (const status of [200, 500]) {
      const { first, over, answer } = await releasedInAttempt(`slow-${status}`)
      const second = await here.own()
      await here.ingest([{ key: `slow-${status}`, n: 2 }])
      await here.ingest([{ key: `other-${status}`, n: 3 }])
      await eventually(() => expect(second.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([3]))
      answer(status)
      await over
      const repeated = status === 200 ? [] : [1]
      await eventually(() =>
        expect(second.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([3, ...repeated, 2]),
      )
      if (status === 500) expect(second.sent[1]).to.deep.equal(first.sent[0])
      const records = await here.records()
      const byFirst = records.filter(({ boot }) => boot === first.boot).map(({ record }) => record.type)
      expect(byFirst).to.include('seal').and.not.include('done').and.not.include('attempt')
      await second.shard.stop(10_000)
      const attempts = (await here.records()).filter(({ boot }) => boot === second.boot)
      expect(attempts.some(({ record }) => record.type === 'attempt')).to.equal(status === 500)
      expect([...first.problems, ...second.problems]).to.deep.equal([])
    }
  })

  it('hands a running attempt over to one that does not know its buffer yet: the result waits for that', async () => {
    for (const status of [200, 500]) {
      const { first, over, answer } = await releasedInAttempt(`slow-${status}`)
      const { promise: configured, resolve: configure } = Promise.withResolvers<void>()
      const second = await here.own({ configured })
      await here.ingest([{ key: `slow-${status}`, n: 2 }])
      answer(status)
      await over
      configure()
      const repeated = status === 200 ? [] : [1]
      await eventually(() =>
        expect(second.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([...repeated, 2]),
      )
      await second.shard.stop(10_000)
      expect(await here.db`SELECT version FROM dlq_items`).to.have.length(0)
      expect([second.ended, ...first.problems, ...second.problems]).to.deep.equal([null])
    }
  })

  it('divides what waits behind a restored batch as its buffer asks for, also where that is known only then', async () => {
    const limits = { maxGroupItems: 10, batch: { maxItems: 50 } }
    const { over, answer } = await releasedInAttempt('late', limits)
    const { promise: configured, resolve: configure } = Promise.withResolvers<void>()
    const second = await here.own({ ...limits, configured })
    await here.ingest(Array.from({ length: 15 }, (_, index) => ({ key: 'late', n: index + 2 })))
    answer(200)
    // Only a restored batch takes its result.
    await over
    configure()
    await here.done(3)
    expect(second.sent.map(({ body }) => numbersOf(body).length)).to.deep.equal([10, 5])
  })

  /** From now on nobody is told which batches are dead letters already, as at each take-over, until `answerAgain`. */
  async function silentPostgres(): Promise<{ answerAgain: () => Promise<void> }> {
    const { promise: answering, resolve: answer } = Promise.withResolvers<void>()
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>()
    const silence = here.db.begin(async (db) => {
      await db`SET LOCAL idle_in_transaction_session_timeout = 0`
      await db`LOCK TABLE dlq_items IN ACCESS EXCLUSIVE MODE`
      lock()
      await answering
    })
    await locked
    const answerAgain = async () => {
      answer()
      await silence
    }
    return { answerAgain }
  }

  /** Messages with results that pass from now on. */
  function resultsTold(): { count: number } {
    const told = { count: 0 }
    here.broker.subscribe('shard.0.results', () => told.count++)
    return told
  }

  /** To an owner whose time of day is later the attempt at the one before is long over. */
  const later = { aheadMs: 12_000 }

  it('hands on a result that it had no use for, past its deadline: Postgres did not answer it', async () => {
    let speaking = 0
    /** Nobody before the owner of that number is heard any more once it has let go. */
    const heard = (number: number) => muting(here.broker, () => number < speaking)
    const { first, over, answer } = await releasedInAttempt('a', { broker: heard(0) })
    const { answerAgain } = await silentPostgres()
    answer(200)
    const handedOver = [over]
    for (const number of [1, 2]) {
      const between = await here.own({ ...later, broker: heard(number) })
      const told = resultsTold()
      await eventually(() => told.count > 2)
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      handedOver.push(between.shard.handOver(20_000, release))
      await released
      speaking = number
      expect(between.sent).to.deep.equal([])
    }
    await answerAgain()
    const next = await here.own(later)
    await here.done(1)
    speaking = 0
    await Promise.all(handedOver)
    expect([first.sent.length, next.sent]).to.deep.equal([1, []])
  })

  it('stops, with nobody to take over, once Postgres lets it take note of a result', async () => {
    const { first, over, answer } = await releasedInAttempt('a')
    const { answerAgain } = await silentPostgres()
    answer(200)
    const last = await here.own(later)
    const told = resultsTold()
    await eventually(() => told.count > 2)
    const stopped = last.shard.stop(20_000)
    await delay(300)
    expect(last.shard.state).to.equal('draining')
    await answerAgain()
    await stopped
    await here.done(1)
    await over
    expect([first.sent.length, last.sent]).to.deep.equal([1, []])
  })

  it('stops while a seal is on its way: the next owner need not wait for an attempt that never began', async () => {
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const first = await here.own({
      broker: holdingCommits(here.broker, async ({ records }) => {
        if (!records.some(({ type }) => type === 'seal')) return
        reach()
        await opened
      }),
    })
    await here.ingest([{ key: 'a', n: 1 }])
    await reached
    const stopped = first.shard.stop(10_000)
    open()
    await stopped
    expect(first.sent).to.deep.equal([])
    const records = (await here.records()).map(({ record }) => record)
    expect(records.filter(({ type }) => type === 'seal')).to.have.length(1)
    expect(records.at(-1)).to.deep.equal({ type: 'release', batches: [] })
  })

  it('begins no attempt while its node does not hold its lease, whatever the groups know of that', async () => {
    const owner = await here.own({ holds: () => false })
    await here.ingest([{ key: 'a', n: 1 }])
    await eventually(async () => {
      const seals = (await here.records()).filter(({ record }) => record.type === 'seal')
      expect(seals).to.have.length(1)
    })
    const next = await here.own()
    await eventually(() => expect(next.sent).to.have.length(1))
    expect(owner.sent).to.deep.equal([])
  })

  it('names only what runs: the next owner sends at once what waits for its turn', async () => {
    const answers: ((status: number) => void)[] = []
    const first = await here.own({
      destination: () => new Promise<number>((resolve) => answers.push(resolve)),
      attemptsPerBuffer: 1,
    })
    for (const key of ['a', 'b']) await here.ingest([{ key, n: 1 }])
    await eventually(async () => {
      const seals = (await here.records()).filter(({ record }) => record.type === 'seal')
      expect(seals).to.have.length(2)
    })
    expect(first.sent).to.have.length(1)
    const over = first.shard.handOver(10_000, () => {})
    await eventually(() => first.shard.state === 'ended')
    const { record } = (await here.records()).at(-1)!
    expect(record.type === 'release' && record.batches).to.have.length(1)
    const second = await here.own()
    await eventually(() => expect(second.sent).to.have.length(1))
    answers[0]!(200)
    await over
    expect(second.sent[0]!.key).to.not.equal(first.sent[0]!.key)
    await here.done(2)
    expect(first.sent).to.have.length(1)
  })

  it('leaves a release although its claim was not over: it names what runs at the owner before', async () => {
    const { first, over, answer } = await releasedInAttempt('a')
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const between = here.make({ broker: holdingProvenClaims(here.broker, reach, opened) })
    const claimed = between.shard.start()
    await reached
    await between.shard.stop(1_000)
    open()
    await claimed
    const { boot, record } = (await here.records()).at(-1)!
    expect(boot).to.equal(between.boot)
    expect(record.type === 'release' && record.batches).to.have.length(1)
    const next = await here.own()
    answer(200)
    await over
    await here.done(1)
    expect([first.sent.length, between.sent, next.sent]).to.deep.equal([1, [], []])
  })

  it('proves its claim again when its node was without its lease meanwhile: another may have claimed', async () => {
    const { promise: unanswered } = Promise.withResolvers<number>()
    const lost = await here.own({ destination: () => unanswered })
    await here.ingest([{ key: 'a', n: 1 }])
    await eventually(() => lost.sent.length === 1)
    await lost.shard.abandon()
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const old = here.make({ broker: holdingProvenClaims(here.broker, reach, opened) })
    const claimed = old.shard.start()
    await reached
    old.shard.pause(true)
    const next = await here.own({ housekeeping: { everyMs: 60_000 } })
    await here.done(1)
    old.shard.pause(false)
    open()
    await claimed
    await eventually(() => old.shard.state === 'ended')
    expect(old.ended).to.be.instanceOf(FencedError)
    expect([old.sent, next.sent]).to.deep.equal([[], lost.sent])
  })
})
