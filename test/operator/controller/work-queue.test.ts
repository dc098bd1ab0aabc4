import { expect } from 'chai'
import { describe, it } from 'mocha'
import { WorkQueue } from '../../../operator/controller/work-queue.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { seededFractions } from '../../support/seeded.ts'

function fixture() {
  const clock = new ManualClock()
  return { clock, queue: new WorkQueue(clock) }
}

/** The next key, or undefined when nothing may be taken now. */
async function takeNow(queue: WorkQueue): Promise<string | undefined> {
  return queue.depth === 0 ? undefined : (await queue.take())?.key
}

describe('the work queue', () => {
  it('hands out keys in the order in which they were added', async () => {
    const { queue } = fixture()
    for (const key of ['a', 'b', 'c']) queue.add(key)
    expect([await takeNow(queue), await takeNow(queue), await takeNow(queue)]).to.deep.equal(['a', 'b', 'c'])
  })

  it('makes one pass of many adds', async () => {
    const { queue } = fixture()
    for (let add = 0; add < 100; add++) queue.add('a')
    expect(await takeNow(queue)).to.equal('a')
    queue.done('a')
    expect(queue.depth).to.equal(0)
  })

  it('never hands out a key that is being worked on, and once more when it was added meanwhile', async () => {
    const { queue } = fixture()
    queue.add('a')
    await queue.take()
    for (let add = 0; add < 100; add++) queue.add('a')
    expect(queue.depth).to.equal(0)
    queue.done('a')
    expect(await takeNow(queue)).to.equal('a')
    queue.done('a')
    expect(queue.depth).to.equal(0)
  })

  it('serves waiting workers first come, first served', async () => {
    const { queue } = fixture()
    const [first, second] = [queue.take(), queue.take()]
    queue.add('a')
    queue.add('b')
    expect([(await first)?.key, (await second)?.key]).to.deep.equal(['a', 'b'])
  })

  it('tells how long a key waited, from its first add', async () => {
    const { clock, queue } = fixture()
    queue.add('a')
    clock.advance(30)
    queue.add('a')
    clock.advance(12)
    expect(await queue.take()).to.deep.equal({ key: 'a', waitedMs: 42 })
    queue.add('a')
    clock.advance(5)
    queue.done('a')
    expect((await queue.take())?.waitedMs).to.equal(5)
  })

  it('keeps the earlier of two delays', async () => {
    const { clock, queue } = fixture()
    queue.addAfter('a', 1_000)
    queue.addAfter('a', 100)
    queue.addAfter('a', 500)
    clock.advance(99)
    expect(queue.depth).to.equal(0)
    clock.advance(1)
    expect(await takeNow(queue)).to.equal('a')
    queue.done('a')
    clock.advance(10_000)
    expect(queue.depth).to.equal(0)
  })

  it('doubles the delay of a key that fails from 5 ms to 5 minutes, and forgets it on success', async () => {
    const { clock, queue } = fixture()
    const waited: number[] = []
    for (let failure = 0; failure < 18; failure++) waited.push(await delayOf(queue, clock))
    expect(waited.slice(0, 4)).to.deep.equal([5, 10, 20, 40])
    expect(waited.slice(-3)).to.deep.equal([5 * 2 ** 15, 300_000, 300_000])
    expect(queue.failures('a')).to.equal(18)
    queue.forget('a')
    expect(await delayOf(queue, clock)).to.equal(5)
  })

  it('takes a change during the back-off at once', async () => {
    const { queue } = fixture()
    for (let failure = 0; failure < 10; failure++) queue.addRateLimited('a')
    expect(queue.depth).to.equal(0)
    queue.add('a')
    expect(await takeNow(queue)).to.equal('a')
  })

  it('repeats the failed passes of a namespace a hundred at once, then ten a second', () => {
    const { clock, queue } = fixture()
    for (let key = 0; key < 150; key++) queue.addRateLimited(`shop/${key}`)
    expect(queue.failing).to.equal(150)
    clock.advance(5)
    expect(queue.depth).to.equal(100)
    clock.advance(995)
    expect(queue.depth).to.equal(110)
    clock.advance(4_000)
    expect(queue.depth).to.equal(150)
  })

  it('repeats a key soon, however often keys of another namespace fail', async () => {
    const { clock, queue } = fixture()
    for (let failure = 0; failure < 10_000; failure++) await fail(queue, `bad/${failure % 20}`)
    queue.addRateLimited('good/orders')
    clock.advance(1_000)
    expect(await takenNow(queue)).to.include('good/orders')
  })

  it('repeats a key soon, however often another one of its namespace was changed and failed', async () => {
    const { clock, queue } = fixture()
    for (let failure = 0; failure < 10_000; failure++) await fail(queue, 'shop/bad')
    queue.addRateLimited('shop/orders')
    clock.advance(1_000)
    expect(await takenNow(queue)).to.include('shop/orders')
  })

  it('never waits for longer than five minutes', async () => {
    const { clock, queue } = fixture()
    for (let key = 0; key < 10_000; key++) queue.addRateLimited(`shop/${key}`)
    clock.advance(300_000)
    expect(queue.depth).to.equal(10_000)
  })

  it('makes no other pass for a failure before a success', async () => {
    const { clock, queue } = fixture()
    for (let failure = 0; failure < 10; failure++) queue.addRateLimited('a')
    queue.forget('a')
    expect(clock.pending).to.equal(0)
    queue.addRateLimited('a')
    clock.advance(5)
    expect(queue.depth).to.equal(1)
  })

  it('wakes its workers when it is closed, and takes nothing any more', async () => {
    const { clock, queue } = fixture()
    queue.add('a')
    await queue.take()
    const waiting = queue.take()
    queue.addAfter('b', 10)
    queue.add('a')
    queue.close()
    queue.done('a')
    queue.add('c')
    clock.advance(10)
    expect([await waiting, await queue.take(), queue.depth, clock.pending]).to.deep.equal([
      undefined,
      undefined,
      0,
      0,
    ])
  })

  it('runs no key twice at once and ends with a pass after the last add of each, in any order of things', async () => {
    for (let seed = 1; seed <= 50; seed++) await walk(seed)
  })
})

/** A pass for a change of the key, which fails. */
async function fail(queue: WorkQueue, key: string): Promise<void> {
  queue.add(key)
  await queue.take()
  queue.addRateLimited(key)
  queue.done(key)
}

/** All keys that wait, whose passes end at once. */
async function takenNow(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = []
  for (let key = await takeNow(queue); key !== undefined; key = await takeNow(queue)) {
    queue.done(key)
    keys.push(key)
  }
  return keys
}

async function delayOf(queue: WorkQueue, clock: ManualClock): Promise<number> {
  queue.addRateLimited('a')
  const from = clock.now()
  while (queue.depth === 0) clock.advance(1)
  const waited = clock.now() - from
  await queue.take()
  queue.done('a')
  // The bucket is full again: only the key's own delay is seen.
  clock.advance(20_000)
  return waited
}

/** 400 random adds, takes and ends over five keys, against what each key is owed. */
async function walk(seed: number): Promise<void> {
  const random = seededFractions(seed)
  const { clock, queue } = fixture()
  const running = new Set<string>()
  const owed = new Set<string>()
  const take = async () => {
    const key = await takeNow(queue)
    if (key === undefined) return
    expect(running.has(key), `seed ${seed}: ${key} runs twice`).to.equal(false)
    expect(owed.has(key), `seed ${seed}: ${key} runs for nothing`).to.equal(true)
    owed.delete(key)
    running.add(key)
  }
  const end = (key: string | undefined) => {
    if (key === undefined) return
    running.delete(key)
    queue.done(key)
  }
  for (let step = 0; step < 400; step++) {
    const key = `key-${Math.floor(random() * 5)}`
    const choice = random()
    if (choice < 0.4) {
      queue.add(key)
      owed.add(key)
    } else if (choice < 0.7) await take()
    else if (choice < 0.95) end([...running][Math.floor(random() * running.size)])
    else clock.advance(1)
  }
  while (running.size > 0 || queue.depth > 0) {
    await take()
    end([...running][0])
  }
  expect([...owed], `seed ${seed}`).to.deep.equal([])
}
