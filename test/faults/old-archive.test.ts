/**
 * An archive that is rolled back under load (fault matrix, row 26). Its shard goes on where the journal still has all commits behind the
 * old snapshot. It stops with a loss where the journal was cut since.
 */
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { decodeCommit } from '../../internal/shard/journal/codec.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { goesOn, letGo, newestIn, startLoadBesideHeld } from './held-load.ts'
import type { Load } from './load.ts'
import { purging } from './strikes.ts'
import { Trial, within } from './trial.ts'

const SEED = 31
const SHARDS = 2
/** Its archive is rolled back. */
const SHARD = 0
const HELD = 40

describe('an archive that is restored from an old backup', function () {
  this.timeout(120_000)
  let trial: Trial
  let load: Load
  let logs: TestBroker
  const backups = tempFolder('archives')
  /** Sequence of the newest snapshot in the backup. */
  let old: number

  before(async () => {
    const program = 'test/faults/keeping-service.ts'
    trial = await Trial.open({ label: 'old-archive', seed: SEED, servers: 'own', program })
    logs = await brokerAt(trial.own!.nats.url, SHARDS)
    load = await startLoadBesideHeld(trial)
    for (let n = 0; n < HELD; n++)
      await trial.sender.send({ bufferId: 'held', groupKey: `ok-${n % 10}`, bytes: 200 })
  })
  after(async () => {
    await load?.stop()
    await logs?.close()
    await trial?.close()
  })

  const journal = () => logs.broker.journal(SHARD)

  const newest = () => newestIn(logs.broker.archive(SHARD))

  /** Kills the service where it runs, and changes files while NATS is down. */
  async function whileDown(work: () => void): Promise<void> {
    trial.kill()
    await trial.gone()
    const { nats } = trial.own!
    await nats.stop()
    work()
    await nats.restart()
    await eventually(() => journal().state())
  }

  function archiveFolder(): string {
    const { dir } = trial.own!
    const stream = `/streams/ARCHIVE_${SHARD}`
    return join(
      dir,
      readdirSync(dir, { recursive: true, encoding: 'utf8' }).find((at) => at.endsWith(stream))!,
    )
  }

  const backUp = (name: string) => cpSync(archiveFolder(), join(backups, name), { recursive: true })

  function putBack(name: string): void {
    const folder = archiveFolder()
    rmSync(folder, { recursive: true })
    cpSync(join(backups, name), folder, { recursive: true })
  }

  it('lets its shard go on where the journal was not cut since', async () => {
    await eventually(newest)
    await whileDown(() => backUp('old'))
    old = await newest()
    await trial.start()
    const { frame } = await trial.killAt('before', purging(`JOURNAL_${SHARD}`, old), () => {})
    expect(JSON.parse(frame.payload.toString()).seq, 'a later snapshot').to.be.above(old)
    expect(await newest(), 'a later snapshot').to.be.above(old)
    await whileDown(() => putBack('old'))
    expect(await newest()).to.equal(old)
    expect((await journal().state()).firstSeq).to.be.at.most(old)
    await trial.start()
    await goesOn(trial, load)
  })

  it('stops its shard with a loss where the journal was cut since', async () => {
    const later = new Set<number>()
    await eventually(
      async () => {
        const seq = await newest()
        if (seq > old) later.add(seq)
        expect(later.size).to.be.above(1)
        expect((await journal().state()).firstSeq).to.be.above(old)
      },
      { everyMs: 50 },
    )
    await whileDown(() => {
      backUp('present')
      putBack('old')
    })
    const { lastSeq } = await journal().state()
    await trial.startUnhealthy()
    const told = await eventually(() => {
      const { events } = trial.installation.service
      return events.find(({ shard, what }) => shard === SHARD && what === 'the broker lost messages') ?? false
    })
    expect(told.error).to.match(/shard 0: the journal misses commits from \d+ to \d+: see "A lost tail" in /)
    await goesOn(trial, load)
    const health = await fetch(`${trial.installation.service.url}/health`)
    expect(health.status).to.equal(503)
    const types: string[] = []
    for await (const { data } of journal().range(lastSeq + 1, Number.MAX_SAFE_INTEGER))
      types.push(...decodeCommit(data).records.map(({ type }) => type))
    expect(types, 'it claimed, and decided nothing').to.deep.equal(['epoch'])
  })

  it('lets its shard go on again with its present content', async () => {
    await whileDown(() => putBack('present'))
    await trial.start()
    await goesOn(trial, load)
    await within(load.stop(), 30_000, 'the writers do not end')
    await letGo(trial)
    await trial.judge()
  })
})
