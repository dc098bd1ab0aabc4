/** Several nodes over one real broker and database: who runs what, and that it goes on while shards move. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { nodesOfEachTest, runningOn } from './nodes.ts'

const SHARDS = 6

describe('actor nodes of a cluster', function () {
  this.timeout(120_000)
  const here = nodesOfEachTest(SHARDS)

  it('shares the shards, each with one owner; a node that joins takes its part and no more', async () => {
    await here.join()
    await here.shared([6])
    await here.join()
    await here.shared([3, 3])
    await here.join()
    await here.shared([2, 2, 2])
    expect(here.all.flatMap(runningOn).sort()).to.deep.equal([0, 1, 2, 3, 4, 5])
    // One claim to begin with, three for the second node, two for the third.
    const types = await here.recordTypes()
    expect(types.filter((type) => type === 'epoch')).to.have.length(6 + 3 + 2)
    for (const { problems } of here.all) expect(problems).to.deep.equal([])
  })

  it('delivers everything once and in order while nodes join and leave', async () => {
    await here.join()
    let n = 0
    const accepted: number[] = []
    const load = async (count: number) => {
      for (let i = 0; i < count; i++) {
        accepted.push(++n)
        await here.ingest(`k${n % 12}`, n, n % SHARDS)
      }
    }
    await load(60)
    await here.join()
    await load(60)
    await here.shared([3, 3])
    await here.join()
    await load(60)
    await here.shared([2, 2, 2])
    await here.all[0]!.node.stop(5_000)
    await load(60)
    await here.shared([0, 3, 3])
    await eventually(() => expect(here.sent().sort((a, b) => a - b)).to.deep.equal(accepted))
    for (const { problems } of here.all) expect(problems).to.deep.equal([])
  })

  it('goes on at once with what a node lets go, though another has just joined and waits for its part', async () => {
    const settleMs = 3_000
    const stays = await here.join({}, settleMs)
    const leaves = await here.join({}, settleMs)
    await here.shared([3, 3])
    await here.join({}, settleMs)
    await leaves.node.stop(5_000)
    // Once the joiner counts, three of the six are its own.
    await eventually(() => expect(runningOn(stays)).to.have.length(6))
    await here.shared([3, 0, 3])
  })

  it('takes over what the nodes from before leave, though another joins again and again', async () => {
    const settleMs = 400
    const gone = await here.join({}, settleMs)
    await here.shared([6])
    let looping: string | undefined
    const joinAgain = () => {
      const before = looping
      looping = randomUUID()
      here.sharedLeases.join(looping, 6)
      if (before !== undefined) here.sharedLeases.expire(before)
    }
    joinAgain()
    const loop = setInterval(joinAgain, 100)
    try {
      const stays = await here.join({}, settleMs)
      here.sharedLeases.cut(gone.boot)
      here.sharedLeases.expire(gone.boot)
      // Some may be planned for the one that comes and goes.
      await eventually(() => expect(runningOn(stays)).to.not.deep.equal([]))
    } finally {
      clearInterval(loop)
    }
  })

  it('takes over what a node leaves that is gone, and the old one can do nothing more', async () => {
    let answer: (status: number) => void = () => {}
    const old = await here.join({ destination: () => new Promise<number>((resolve) => (answer = resolve)) })
    await here.ingest('a', 1, 0)
    await eventually(() => old.sent.length === 1)
    const next = await here.join()
    here.sharedLeases.cut(old.boot)
    here.sharedLeases.expire(old.boot)
    await eventually(() => expect(runningOn(next)).to.have.length(6))
    await eventually(() => expect(next.sent).to.deep.equal(old.sent))
    answer(200)
    await eventually(() => expect([...old.node.running()]).to.have.length(0))
  })

  it('holds still without its lease, and goes on when it has it back', async () => {
    const node = await here.join()
    await here.ingest('a', 1, 0)
    await eventually(() => node.sent.length === 1)
    here.sharedLeases.cut(node.boot)
    await here.ingest('a', 2, 0)
    await eventually(() => expect([...node.node.shard(0)!.buffered()][0]?.items).to.equal(1))
    await here.ingest('b', 3, 1)
    await eventually(() => expect([...node.node.shard(1)!.buffered()][0]?.items).to.equal(1))
    expect(node.sent).to.have.length(1)
    here.sharedLeases.mend(node.boot)
    await eventually(() => expect(here.sent().sort()).to.deep.equal([1, 2, 3]))
  })

  it('claims nothing whose owner may still live', async () => {
    const silent = here.sharedLeases.join('00000000-0000-4000-8000-000000000001', SHARDS)
    silent.announce({ shards: [0, 1, 2, 3, 4, 5], accepting: false })
    const old = await here.join()
    await eventually(() => expect(runningOn(old)).to.have.length(6))
    here.sharedLeases.cut(old.boot)
    const next = await here.join()
    await eventually(() => expect(next.node.troubles()).to.deep.equal([]))
    expect([...next.node.running()]).to.deep.equal([])
    here.sharedLeases.expire(old.boot)
    await eventually(() => expect(runningOn(next)).to.have.length(6))
  })
})
