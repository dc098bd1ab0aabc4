/** Actor nodes that are told to stop, or that lost their lease for a while, while attempts run: nothing is sent again for it. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { holdingClaims, holdingInboxes } from './hindered-brokers.ts'
import { nodesOfEachTest, runningOn, type TestNode } from './nodes.ts'
import { type Destination, numbersOf } from './real-owner.ts'

const SHARDS = 4

describe('actor nodes that stop', function () {
  this.timeout(120_000)
  const here = nodesOfEachTest(SHARDS)

  /** Its requests wait until `answer`. */
  function slowDestination(): { destination: Destination; answer: (status: number) => void } {
    const { promise, resolve } = Promise.withResolvers<number>()
    return { destination: () => promise, answer: resolve }
  }

  async function oneItemEach(): Promise<void> {
    for (let shard = 0; shard < SHARDS; shard++) await here.ingest(`k${shard}`, shard + 1, shard)
    await eventually(() => expect(here.sent()).to.have.length(SHARDS))
  }

  /** So many shards are with a node that waits for what runs. */
  async function draining(count: number): Promise<void> {
    const all = () => here.all.flatMap(({ node }) => [...node.running()])
    await eventually(() =>
      expect(all().filter(([, { state }]) => state === 'draining')).to.have.length(count),
    )
  }

  it('all at once, do not hand over to each other: what runs is finished and written down', async () => {
    const { destination, answer } = slowDestination()
    await here.join({ destination })
    await here.join({ destination })
    await here.shared([2, 2])
    await oneItemEach()
    const stopped = here.all.map(({ node }) => node.stop(8_000))
    await draining(SHARDS)
    answer(200)
    await Promise.all(stopped)
    await here.done(SHARDS)
    await here.join()
    await here.shared([0, 0, SHARDS])
    expect(here.sent()).to.have.length(SHARDS)
  })

  it('go on meanwhile with what is due, until they know who stays', async () => {
    const first = await here.join({ batch: { maxItems: 1 } })
    await here.join()
    await here.shared([2, 2])
    const [own] = runningOn(first)
    const stopped = first.node.stop(8_000)
    // Due at once, while it listens for who else stops.
    await here.ingest('a', 1, own!)
    await stopped
    expect(first.sent).to.have.length(1)
    await here.done(1)
    expect(here.sent()).to.deep.equal([1])
  })

  it('read on while a node that takes webhooks stops, too, for it waits for their verdicts', async () => {
    const ingress = here.sharedLeases.join('ingress', SHARDS)
    ingress.announce({ accepting: false, webhooks: 'ending' })
    const { node } = await here.join()
    await here.shared([SHARDS])
    let over = false
    const stopped = node.stop(30_000).then(() => {
      over = true
    })
    await draining(SHARDS)
    await here.ingest('a', 1, 0)
    await eventually(() => expect(node.shard(0)?.figures(Date.now())?.items).to.equal(1))
    expect([over, here.sent()]).to.deep.equal([false, []])
    ingress.announce({ webhooks: 'none' })
    await stopped
    expect(await here.recordTypes())
      .to.include('release')
      .and.not.include('seal')
  })

  it('after a hand-over, stay until what it left running is finished and known to the next owner', async () => {
    const { promise: moved, resolve: answer } = Promise.withResolvers<number>()
    const { promise: stayed, resolve: answerOthers } = Promise.withResolvers<number>()
    let next: TestNode | undefined
    const first = await here.join({
      destination: async ({ body }) => {
        const [n] = numbersOf(Buffer.from(body).toString())
        await here.shared([2, 2])
        return runningOn(next!).includes(n! - 1) ? moved : stayed
      },
    })
    await oneItemEach()
    next = await here.join()
    await here.shared([2, 2])
    answerOthers(200)
    await here.done(2)
    let over = false
    const stopped = first.node.stop(8_000).then(() => {
      over = true
    })
    // What first had nothing more to do with, next has claimed by now.
    await eventually(() => expect(runningOn(next!)).to.have.length(SHARDS))
    expect(over).to.equal(false)
    answer(200)
    await stopped
    await here.done(SHARDS)
    expect(next.sent).to.deep.equal([])
  })

  it('with nobody to take over, wait for what still runs at the node that handed over to them', async () => {
    const { destination, answer } = slowDestination()
    const first = await here.join({ destination })
    await oneItemEach()
    const next = await here.join()
    await here.shared([2, 2])
    const stopped = [first.node.stop(8_000)]
    await eventually(() => expect(runningOn(next)).to.have.length(SHARDS))
    stopped.push(next.node.stop(8_000))
    await draining(SHARDS)
    answer(200)
    await Promise.all(stopped)
    await here.done(SHARDS)
    expect(next.sent).to.deep.equal([])
  })

  it('with nobody to take over, in the midst of their claims, wait for that, too', async () => {
    const { destination, answer } = slowDestination()
    const first = await here.join({ destination })
    await oneItemEach()
    const { promise: read, resolve: readOn } = Promise.withResolvers<void>()
    const next = await here.join({ broker: holdingInboxes(here.broker, read) })
    const claimed = () => next.states.filter((state) => state === 'replaying')
    await eventually(() => expect(claimed()).to.have.length(2))
    const stopped = here.all.map(({ node }) => node.stop(8_000))
    await draining(SHARDS)
    readOn()
    answer(200)
    await Promise.all(stopped)
    await here.done(SHARDS)
    expect([next.sent, first.sent.length]).to.deep.equal([[], SHARDS])
  })

  it('before they have restored what they claimed, keep no result from the next owner', async () => {
    const { destination, answer } = slowDestination()
    const first = await here.join({ destination })
    await oneItemEach()
    const { promise: never } = Promise.withResolvers<void>()
    const next = await here.join({ broker: holdingInboxes(here.broker, never) })
    await eventually(() => expect(next.states).to.have.length(2))
    const told = new Map<number, number>()
    const listening = [...next.node.running()].map(([shard]) =>
      here.broker.subscribe(`shard.${shard}.results`, () => told.set(shard, (told.get(shard) ?? 0) + 1)),
    )
    answer(200)
    // Again and again, for the one that is told cannot make use of it yet.
    await eventually(() => expect([...told.values()].filter((times) => times > 2)).to.have.length(2))
    for (const stop of listening) stop()
    await next.node.stop(8_000)
    await here.done(SHARDS)
    expect([next.sent, first.sent.length]).to.deep.equal([[], SHARDS])
  })

  it('take back what was let go for one that stops before it claims', async () => {
    const { destination, answer } = slowDestination()
    const first = await here.join({ destination })
    await oneItemEach()
    const { promise: asked, resolve: goOn } = Promise.withResolvers<void>()
    const broker = holdingClaims(here.broker, asked)
    const next = await here.join({ broker, firstClaimsMs: 100 })
    await eventually(() => expect(runningOn(first)).to.have.length(2))
    const stopped = here.all.map(({ node }) => node.stop(8_000))
    await draining(SHARDS)
    answer(200)
    await stopped[0]
    goOn()
    await stopped[1]
    await here.done(SHARDS)
    expect([next.sent, first.sent.length]).to.deep.equal([[], SHARDS])
  })

  it('get their lease back and send nothing of what another has taken over meanwhile', async () => {
    // By a round of housekeeping, or of counters each second, the old one would learn that it is not the owner any more.
    const housekeeping = { everyMs: 60_000 }
    const old = await here.join({ destination: () => 500, backoffMs: 2_000, housekeeping })
    await here.ingest('a', 1, 0)
    await eventually(() => expect(old.sent).to.have.length(1))
    // The second attempt is due in 2 s.
    await eventually(async () => expect(await here.recordTypes()).to.include('attempt'))
    here.sharedLeases.cut(old.boot)
    here.sharedLeases.expire(old.boot)
    const next = await here.join({ backoffMs: 2_000 })
    await here.done(1)
    expect(next.sent).to.deep.equal(old.sent)
    // The old one has not heard of the next yet when it hears of its own lease.
    here.sharedLeases.expire(next.boot)
    here.sharedLeases.mend(old.boot)
    await eventually(() => expect(old.states.filter((state) => state === 'fenced')).to.have.length(SHARDS))
    expect(old.sent).to.have.length(1)
  })

  it('whose machine was suspended prove each claim before they go on', async () => {
    const node = await here.join({ housekeeping: { everyMs: 3_600_000 } })
    await here.shared([SHARDS])
    const journals = Array.from({ length: SHARDS }, (_, shard) => here.broker.journal(shard))
    const ends = () => Promise.all(journals.map(async (journal) => (await journal.state()).lastSeq))
    const before = await ends()
    here.sharedLeases.suspend(node.boot)
    here.sharedLeases.resume(node.boot)
    // The proof is a commit without records, and nothing else is written here.
    await eventually(async () => expect(await ends()).to.deep.equal(before.map((seq) => seq + 1)))
  })

  it('whose machine was suspended send nothing of what another has taken over meanwhile', async () => {
    const housekeeping = { everyMs: 3_600_000 }
    const old = await here.join({ destination: () => 500, backoffMs: 8_000, housekeeping })
    await here.ingest('a', 1, 0)
    await eventually(() => expect(old.sent).to.have.length(1))
    // The second attempt is due in 8 s, and at once for the other: its clock is ahead.
    await eventually(async () => expect(await here.recordTypes()).to.include('attempt'))
    here.sharedLeases.suspend(old.boot)
    const next = await here.join({ aheadMs: 20_000 })
    await here.done(1)
    expect(next.sent).to.deep.equal(old.sent)
    here.sharedLeases.expire(next.boot)
    here.sharedLeases.resume(old.boot)
    await eventually(() => expect(old.states.filter((state) => state === 'fenced')).to.have.length(SHARDS))
    expect(old.sent).to.have.length(1)
  })
})
