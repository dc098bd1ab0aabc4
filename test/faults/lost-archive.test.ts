/**
 * Archives that are full or deleted, under load (fault matrix, row 26). An owner needs its archive for snapshots only, so its deliveries
 * go on. A claim cannot do without it, and repeats until it is there.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { JetStreamManager, StreamConfig } from 'nats'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { SNAPSHOTS, snapshotsOf } from '../../internal/shard/archive/snapshot-subjects.ts'
import { appendEpoch } from '../../internal/shard/claim/takeover.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import type { LogEvent } from '../support/service.ts'
import { goesOn, letGo, newestIn, startLoadBesideHeld } from './held-load.ts'
import type { Fault } from './history.ts'
import type { Load } from './load.ts'
import { Trial, within } from './trial.ts'

const SEED = 37
const SHARDS = 2
const [FULL, GONE] = [0, 1]
/** So many that each snapshot is larger than ROOM. */
const HELD = 200
/** What an archive has left, bytes: probes fit, and no snapshot. */
const ROOM = 1_000
const STRANGER = '00000000-0000-4000-8000-000000000001'
/** An owner tries again after 30 s. */
const AGAIN = { timeoutMs: 60_000, everyMs: 100 }

describe('an archive', function () {
  this.timeout(120_000)
  let trial: Trial
  let load: Load
  let logs: TestBroker
  let streams: JetStreamManager['streams']
  let backup: { config: StreamConfig; messages: { subject: string; data: Uint8Array }[] }
  let claim: Fault

  before(async () => {
    const program = 'test/faults/keeping-service.ts'
    trial = await Trial.open({ label: 'lost-archive', seed: SEED, servers: 'own', program })
    logs = await brokerAt(trial.own!.nats.url, SHARDS)
    streams = (await logs.connection.nats.jetstreamManager()).streams
    load = await startLoadBesideHeld(trial)
    for (let n = 0; n < HELD; n++)
      await trial.sender.send({ bufferId: 'held', groupKey: `ok-${n % 40}`, bytes: 200 })
  })
  after(async () => {
    await load?.stop()
    await logs?.close()
    await trial?.close()
  })

  const told = (shard: number, what: string): LogEvent[] =>
    trial.installation.service.events.filter((event) => event.shard === shard && event.what === what)

  const newest = (shard: number) => newestIn(logs.broker.archive(shard))

  const beginning = async (shard: number) => (await logs.broker.journal(shard).state()).firstSeq

  /** Leaves ROOM in it. While it holds a second snapshot, that one's bytes become room later: then it waits. */
  async function fill(shard: number): Promise<void> {
    const archive = logs.broker.archive(shard)
    await eventually(async () => {
      const before = await archive.list(SNAPSHOTS)
      const { bytes } = await archive.state()
      expect(snapshotsOf(before.subjects)).to.have.length(1)
      expect(await archive.list(SNAPSHOTS)).to.deep.equal(before)
      await streams.update(`ARCHIVE_${shard}`, { max_bytes: bytes + ROOM })
    })
  }

  async function takeBackup(stream: string): Promise<void> {
    const { config, state } = await streams.info(stream)
    backup = { config, messages: [] }
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const { subject, data } = await streams
        .getMessage(stream, { seq })
        .catch(() => ({ subject: '', data: [] }))
      if (subject !== '') backup.messages.push({ subject, data: Uint8Array.from(data) })
    }
  }

  it('delays no delivery while it is full, and its owner reports it', async () => {
    for (const shard of [FULL, GONE]) await fill(shard)
    const what = 'the archive does not take a snapshot'
    for (const shard of [FULL, GONE]) await eventually(() => expect(told(shard, what)).not.to.have.length(0))
    await goesOn(trial, load)
    for (const shard of [FULL, GONE])
      expect(await beginning(shard), 'cut behind no other').to.be.at.most(await newest(shard))
    expect((await fetch(`${trial.installation.service.url}/health`)).status).to.equal(200)
  })

  it('delays no delivery when it is deleted under its owner', async () => {
    await takeBackup(`ARCHIVE_${GONE}`)
    await streams.delete(`ARCHIVE_${GONE}`)
    await goesOn(trial, load)
    expect((await fetch(`${trial.installation.service.url}/health`)).status).to.equal(200)
  })

  it('takes the next snapshot by itself once it has room', async () => {
    const [before, begins] = [await newest(FULL), await beginning(FULL)]
    await streams.update(`ARCHIVE_${FULL}`, { max_bytes: 32 * 1024 * 1024 })
    await eventually(async () => (await newest(FULL)) > before, AGAIN)
    await eventually(async () => (await beginning(FULL)) > begins)
  })

  it('that was deleted is reported by its owner', async () => {
    await eventually(
      () => expect(told(GONE, 'housekeeping').at(-1)?.error).to.include('the archive takes no probe'),
      AGAIN,
    )
    await goesOn(trial, load)
  })

  it('that was deleted holds the next claim, which reports it and repeats', async () => {
    claim = trial.beginFault('claim')
    await appendEpoch(logs.broker.journal(GONE), {
      boot: STRANGER,
      claim: 1,
      clock: systemClock(),
      stopped: () => false,
    })
    const waits = () => told(GONE, 'the shard is quarantined')
    await eventually(() => expect(waits()).to.have.length.above(1))
    for (const { error } of waits()) expect(error).to.include('the archive takes no probe')
    expect((await fetch(`${trial.installation.service.url}/health`)).status).to.equal(503)
    await goesOn(trial, load)
  })

  it('lets its shard go on by itself once it is restored', async () => {
    const { config, messages } = backup
    await streams.add({ ...config, max_bytes: 32 * 1024 * 1024 } as StreamConfig)
    for (const { subject, data } of messages) await logs.connection.nats.request(subject, data)
    await eventually(async () => (await fetch(`${trial.installation.service.url}/health`)).ok, AGAIN)
    claim.to = Date.now()
    await within(load.stop(), 30_000, 'the writers do not end')
    await letGo(trial)
    await trial.judge()
  })
})
