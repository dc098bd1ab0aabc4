/** What an owner answers when an ingress asks whether a message id is taken, and when it stays silent. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { groupToken } from '../../internal/domain/group.ts'
import { askSubject, decodeAnswer, encodeAsk } from '../../internal/domain/verdict.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { appendEpoch } from '../../internal/shard/claim/takeover.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createOwner, ingest, type Owner } from './real-owner.ts'

const NEVER_DUE = { maxItems: 100, idleTimeoutMs: 3_600_000, maxWaitFromFirstMs: 3_600_000 }

describe('an owner that is asked for the original of a message id', function () {
  this.timeout(60_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  let owner: Owner
  let holds: boolean
  /** By the id of the question. */
  let answers: Map<number, string | null>

  beforeEach(async () => {
    nats = await brokerAt((await natsAccount()).url, 1)
    db = connect(await freshDatabase(), { max: 2 })
    buffer = await insertBuffer(db, await insertCustomer(db))
    holds = true
    answers = new Map()
    nats.broker.subscribe('answers', (bytes) => {
      const answer = decodeAnswer(bytes)
      if (answer?.kind === 'original') answers.set(answer.id, answer.itemId)
    })
    const quiet = { everyMs: 3_600_000 }
    owner = createOwner({ ...nats, db, buffer, batch: NEVER_DUE, housekeeping: quiet, holds: () => holds })
    await owner.shard.start()
    await ingest(nats.broker, buffer, [{ key: 'ada', n: 1, messageId: 'taken' }])
    await eventually(() => expect([...owner.shard.buffered()].map(({ items }) => items)).to.deep.equal([1]))
  })

  afterEach(async () => {
    await owner.shard.abandon()
    await nats.close()
    await db.end({ timeout: 2 })
  })

  function ask(id: number, messageId: string): void {
    const question = encodeAsk({ kind: 'original', id, groupToken: groupToken(buffer.uid, 'ada'), messageId })
    nats.broker.publish(askSubject(0), question, 'answers')
  }

  /** The owner has seen all that was published before: messages of one connection stay in order. */
  async function heardOf(id: number): Promise<void> {
    ask(id, `free ${randomUUID()}`)
    await eventually(() => expect(answers.get(id)).to.equal(null))
  }

  it('names the item that is buffered, and none for an id that is free', async () => {
    ask(1, 'taken')
    ask(2, 'free')
    await eventually(() => expect([...answers.keys()].sort()).to.deep.equal([1, 2]))
    expect(answers.get(1)).to.be.a('string')
    expect(answers.get(2)).to.equal(null)
  })

  it('says nothing while its node is not sure of its lease', async () => {
    holds = false
    ask(1, 'taken')
    ask(2, 'free')
    await nats.broker.inbox(0).state()
    holds = true
    await heardOf(3)
    expect([...answers.keys()]).to.deep.equal([3])
  })

  it('names nothing after another node has claimed the shard, although it holds its lease', async () => {
    const boot = randomUUID()
    const clock = systemClock()
    await appendEpoch(nats.broker.journal(0), { boot, claim: 1, clock, stopped: () => false })
    ask(1, 'taken')
    await eventually(() => expect(owner.states).to.include('fenced'))
    expect([...answers.keys()]).to.deep.equal([])
  })
})
