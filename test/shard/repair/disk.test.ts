/** A power cut, or a node that claims, while a repair waits for the broker's disk (docs/architecture/repair.md, "The journal"). */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../../internal/postgres/dead-letters.ts'
import { SNAPSHOTS } from '../../../internal/shard/archive/snapshot-subjects.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import { DisturbedRepairError } from '../../../internal/shard/repair/journal-repair.ts'
import { repairShard } from '../../../internal/shard/repair/repair.ts'
import { brokerAt, type TestBroker } from '../../nats/support.ts'
import { eventually } from '../../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../../support/rows.ts'
import { freshDatabase, natsAccount } from '../../support/servers.ts'
import { numbersSent, RepairHarness } from './harness.ts'
import { Interruption } from './interruption.ts'
import { notingSteps } from './steps.ts'

const SHARDS = 8
/** Everything is due at once. */
const SOON = { batch: { maxItems: 2, idleTimeoutMs: 100, maxWaitFromFirstMs: 1_000 } }

describe('a repair that waits for the disk', function () {
  this.timeout(120_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  let harness: RepairHarness
  let shard = 0

  before(async () => {
    nats = await brokerAt((await natsAccount()).url, SHARDS)
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
  })

  after(async () => {
    await nats.close()
    await db.end({ timeout: 2 })
  })

  beforeEach(() => {
    harness = new RepairHarness(nats, db, buffer, shard++)
  })

  /** Outstanding: b. Postgres knows of more than the journal holds. */
  async function loseEnd(): Promise<void> {
    const owner = await harness.own(['b'])
    await harness.send({ key: 'b', n: 3 }, { key: 'b', n: 4 })
    await harness.wrote('seal', 1)
    await owner.shard.abandon()
    await createDeadLetters(db).raiseEpoch({ shard: harness.shard, epoch: Date.now() * 1_000 + 60_000_000 })
  }

  function expectLostTail(error: unknown): void {
    expect(error).to.be.instanceOf(LostTailError)
  }

  async function expectWhole(): Promise<void> {
    await repairShard(harness.repairOptions())
    const owner = await harness.own([], SOON)
    await eventually(() => expect(numbersSent(owner)).to.include.members([3, 4]))
    harness.expectOneBodyAKey()
    await owner.shard.abandon()
  }

  it('removes what it replaces only when the replacement is there', async () => {
    await loseEnd()
    const steps: string[] = []
    await repairShard(notingSteps(harness.repairOptions(), steps))
    expect(steps).to.deep.equal(['save', 'snapshot', 'wait', 'emptyJournal', 'whole', 'wait', 'remove'])
    await expectWhole()
  })

  it('keeps the copy when a power cut takes the new journal meanwhile', async () => {
    await loseEnd()
    const { copies } = harness.repairOptions()
    const empty = async (wait: number) => {
      if (wait === 2) await copies.emptyJournal(harness.shard, (await harness.lastSeqs()).journal + 1)
    }
    const steps: string[] = []
    const end = await repairShard(notingSteps(harness.repairOptions(), steps, empty)).catch((error) => error)
    expect(end).to.be.instanceOf(DisturbedRepairError)
    expect(steps).to.not.include('remove')
    await expectWhole()
  })

  it('empties nothing when a power cut takes the copy meanwhile', async () => {
    await loseEnd()
    const { copies } = harness.repairOptions()
    const steps: string[] = []
    const options = notingSteps(harness.repairOptions(), steps, () => copies.remove(harness.shard))
    expect(await repairShard(options).catch((error) => error)).to.be.instanceOf(DisturbedRepairError)
    expect(steps).to.deep.equal(['save', 'snapshot', 'wait'])
    await expectWhole()
  })

  it('empties nothing when a power cut takes the snapshot of the new journal meanwhile', async () => {
    await loseEnd()
    const steps: string[] = []
    const options = notingSteps(harness.repairOptions(), steps, () => harness.archive.remove(SNAPSHOTS))
    expect(await repairShard(options).catch((error) => error)).to.be.instanceOf(DisturbedRepairError)
    expect(steps).to.deep.equal(['save', 'snapshot', 'wait'])
    await expectWhole()
  })

  it('empties nothing when a node claims the shard meanwhile', async () => {
    await loseEnd()
    const steps: string[] = []
    // From the snapshot on it takes the journal for lost.
    const claim = () => harness.own([]).then(({ shard }) => shard.abandon(), expectLostTail)
    const options = notingSteps(harness.repairOptions(), steps, claim)
    expect(await repairShard(options).catch((error) => error)).to.be.instanceOf(DisturbedRepairError)
    expect(steps).to.deep.equal(['save', 'snapshot', 'wait'])
    await expectWhole()
  })

  it('goes on from the copy when the emptied journal comes back as if it had just been made', async () => {
    await loseEnd()
    const { copies, ...options } = harness.repairOptions()
    const emptying = async (...given: Parameters<typeof copies.emptyJournal>) => {
      await copies.emptyJournal(...given)
      throw new Interruption()
    }
    const cut = { ...options, copies: { ...copies, emptyJournal: emptying } }
    expect(await repairShard(cut).catch((error) => error)).to.be.instanceOf(Interruption)
    const manager = await nats.connection.nats.jetstreamManager()
    const { config } = await manager.streams.info(`JOURNAL_${harness.shard}`)
    await manager.streams.delete(config.name)
    await manager.streams.add(config)
    await expectWhole()
  })
})
