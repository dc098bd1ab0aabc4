/** Several nodes over one real broker and database: who runs what, and that it goes on while shards move. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { Bulletin } from './bulletin.ts'
import { createNode, ingest, journalRecords, numbersOf, type OwnerOptions } from './real-owner.ts'

const SHARDS = 6

describe('actor nodes of a cluster', function () {
  this.timeout(60_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  let bulletin: Bulletin
  let nodes: ReturnType<typeof createNode>[]

  beforeEach(async () => {
    nats = await brokerAt((await natsAccount()).url, SHARDS)
    db = connect(await freshDatabase(), { max: 8 })
    buffer = await insertBuffer(db, await insertCustomer(db))
    bulletin = new Bulletin()
    nodes = []
  })

  afterEach(async () => {
    for (const { node } of nodes) await node.stop(3_000)
    await nats.close()
    await db.end({ timeout: 2 })
  })

  async function join(
    options: Partial<OwnerOptions> = {},
    settleMs = 50,
  ): Promise<ReturnType<typeof createNode>> {
    const made = createNode(
      { broker: nats.broker, db, buffer, ...options },
      SHARDS,
      (boot) => bulletin.join(boot, SHARDS),
      settleMs,
    )
    nodes.push(made)
    await made.node.start()
    return made
  }

  const running = ({ node }: ReturnType<typeof createNode>) =>
    [...node.running()].filter(([, shard]) => shard.state === 'running').map(([number]) => number)

  const shared = (counts: number[]) =>
    eventually(() => expect(nodes.map((each) => running(each).length)).to.deep.equal(counts))

  const sent = () => nodes.flatMap((each) => each.sent.flatMap(({ body }) => numbersOf(body)))

  it('shares the shards, each with one owner; a node that joins takes its part and no more', async () => {
    await join()
    await shared([6])
    await join()
    await shared([3, 3])
    await join()
    await shared([2, 2, 2])
    expect(nodes.flatMap(running).sort()).to.deep.equal([0, 1, 2, 3, 4, 5])
    // One claim to begin with, three for the second node, two for the third.
    const claims = await Promise.all(
      Array.from({ length: SHARDS }, async (_, shard) => journalRecords(nats.broker, shard)),
    )
    expect(claims.flat().filter(({ record }) => record.type === 'epoch')).to.have.length(6 + 3 + 2)
    for (const { problems } of nodes) expect(problems).to.deep.equal([])
  })

  it('delivers everything once and in order while nodes join and leave', async () => {
    await join()
    let n = 0
    const accepted: number[] = []
    const load = async (count: number) => {
      for (let i = 0; i < count; i++) {
        accepted.push(++n)
        await ingest(nats.broker, buffer, [{ key: `k${n % 12}`, n }], n % SHARDS)
      }
    }
    await load(60)
    await join()
    await load(60)
    await shared([3, 3])
    await join()
    await load(60)
    await shared([2, 2, 2])
    await nodes[0]!.node.stop(5_000)
    await load(60)
    await shared([0, 3, 3])
    await eventually(() => expect(sent().sort((a, b) => a - b)).to.deep.equal(accepted))
    for (const { problems } of nodes) expect(problems).to.deep.equal([])
  })

  it('goes on at once with what a node lets go, though another has just joined and waits for its part', async () => {
    const settleMs = 1_000
    const stays = await join({}, settleMs)
    const leaves = await join({}, settleMs)
    await shared([3, 3])
    await join({}, settleMs)
    await leaves.node.stop(5_000)
    // Once the joiner counts, three of the six are its own.
    await eventually(() => expect(running(stays)).to.have.length(6))
    await shared([3, 0, 3])
  })

  it('takes over what a node leaves that is gone, and the old one can do nothing more', async () => {
    let answer: (status: number) => void = () => {}
    const old = await join({ destination: () => new Promise<number>((resolve) => (answer = resolve)) })
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }], 0)
    await eventually(() => old.sent.length === 1)
    const next = await join()
    bulletin.cut(old.boot)
    bulletin.expire(old.boot)
    await eventually(() => expect(running(next)).to.have.length(6))
    await eventually(() => expect(next.sent).to.deep.equal(old.sent))
    answer(200)
    await eventually(() => expect([...old.node.running()]).to.have.length(0))
  })

  it('holds still without its lease, and goes on when it has it back', async () => {
    const node = await join()
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }], 0)
    await eventually(() => node.sent.length === 1)
    bulletin.cut(node.boot)
    await ingest(nats.broker, buffer, [{ key: 'a', n: 2 }], 0)
    await eventually(() => expect([...node.node.shard(0)!.buffered()][0]?.items).to.equal(1))
    await ingest(nats.broker, buffer, [{ key: 'b', n: 3 }], 1)
    await eventually(() => expect([...node.node.shard(1)!.buffered()][0]?.items).to.equal(1))
    expect(node.sent).to.have.length(1)
    bulletin.mend(node.boot)
    await eventually(() => expect(sent().sort()).to.deep.equal([1, 2, 3]))
  })

  it('claims nothing whose owner may still live', async () => {
    const silent = bulletin.join('00000000-0000-4000-8000-000000000001', SHARDS)
    silent.announce({ shards: [0, 1, 2, 3, 4, 5], accepting: false })
    const old = await join()
    await eventually(() => expect(running(old)).to.have.length(6))
    bulletin.cut(old.boot)
    const next = await join()
    await eventually(() => expect(next.node.troubles()).to.deep.equal([]))
    expect([...next.node.running()]).to.deep.equal([])
    bulletin.expire(old.boot)
    await eventually(() => expect(running(next)).to.have.length(6))
  })
})
