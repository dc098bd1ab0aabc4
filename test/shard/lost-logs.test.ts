/** All streams of an installation gone beside the Postgres that knew them: what a start can tell, and what not. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { ensureStreams } from '../../internal/nats/streams/streams.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { LostTailError } from '../../internal/shard/lost-tail.ts'
import { brokerAt, STORE_BYTES_PER_SHARD, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createOwner, ingest, type Owner } from './real-owner.ts'

const AN_HOUR = 3_600_000

describe('an installation that lost all of its logs', function () {
  this.timeout(120_000)
  let db: Database
  let buffer: TestBuffer
  let nats: TestBroker
  let former: Owner
  /** Sequence up to which the former journal was counted. */
  let counted: number

  before(async () => {
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
  })
  beforeEach(async () => {
    await nats?.close()
    await db`TRUNCATE shards, projections`
    nats = await brokerAt((await natsAccount()).url)
    former = createOwner({ broker: nats.broker, db, buffer })
    await former.shard.start()
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }])
    const position = () => createProjection(db).position(0)
    await eventually(async () => expect(await position()).to.be.above(former.shard.epoch))
    await eventually(() => expect(former.sent).to.have.length(1))
    counted = await position()
    await former.shard.abandon()
  })
  after(async () => {
    await nats?.close()
    await db?.end({ timeout: 2 })
  })

  async function makeAnew(clock: Clock): Promise<void> {
    const manager = await nats.connection.nats.jetstreamManager()
    for (const stream of ['INBOX_0', 'JOURNAL_0', 'ARCHIVE_0']) await manager.streams.delete(stream)
    const options = { clock, shards: 1, replicas: 1, storeBytes: STORE_BYTES_PER_SHARD }
    await ensureStreams(nats.connection, options)
  }

  it('begins anew above all that was, and reports that the former logs are gone', async () => {
    await makeAnew(systemClock())
    const tells = (owner: Owner) =>
      owner.problems.filter((text) => text.startsWith('the logs were made anew'))
    const first = createOwner({ broker: nats.broker, db, buffer })
    await first.shard.start()
    expect(first.ended).to.equal(null)
    expect(first.shard.epoch).to.be.above(counted)
    // Postgres may answer after the start: a claim waits for it half a second.
    await eventually(() => expect(tells(first), first.problems.join()).to.have.length(1))
    expect(tells(first)[0]).to.include(`commits up to ${counted} `)
    await ingest(nats.broker, buffer, [{ key: 'a', n: 2 }])
    await eventually(() => expect(first.sent).to.have.length(1))
    const version = ({ sent }: Owner) => Number(/:v(\d+)$/.exec(sent[0]!.key)?.[1])
    expect(version(first)).to.be.above(version(former))
    await eventually(async () =>
      expect(await createProjection(db).position(0)).to.be.above(first.shard.epoch),
    )
    await first.shard.abandon()
    const second = createOwner({ broker: nats.broker, db, buffer })
    await second.shard.start()
    expect(tells(second)).to.deep.equal([])
    await second.shard.abandon()
  })

  it('stops where the new ones begin below the former ones, by a clock that is behind', async () => {
    const behind = { ...systemClock(), now: () => Date.now() - AN_HOUR }
    await makeAnew(behind)
    const owner = createOwner({ broker: nats.broker, db, buffer })
    await owner.shard.start()
    await eventually(() => expect(owner.ended).to.be.instanceOf(LostTailError))
    expect(owner.sent).to.deep.equal([])
  })
})
