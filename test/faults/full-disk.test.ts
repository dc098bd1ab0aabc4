/**
 * The disk of the embedded servers is full under load (fault matrix, row 24): refusals, and once somebody has made room,
 * recovery without hands, though NATS by itself would not write again. Needs root, for a disk of its own.
 */
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { SmallDisk } from '../support/small-disk.ts'
import { letGo, startLoadBesideHeld } from './held-load.ts'
import type { Fault } from './history.ts'
import type { Load } from './load.ts'
import { Trial, within } from './trial.ts'

const SEED = 24
const DISK_MB = 512
const ROOM_BYTES = 6 * 1024 * 1024

describe('a service whose disk is full', function () {
  this.timeout(240_000)
  let disk: SmallDisk | undefined
  let trial: Trial
  let load: Load
  let fault: Fault

  before(async function () {
    disk = SmallDisk.mount(DISK_MB)
    if (disk === undefined) return this.skip()
    const dataDir = join(disk.dir, 'data')
    trial = await Trial.open({ label: 'full-disk', seed: SEED, servers: 'embedded', dataDir })
    load = await startLoadBesideHeld(trial)
  })
  after(async () => {
    await load?.stop()
    await trial?.close()
    disk?.unmount()
  })

  it('refuses with 503', async () => {
    fault = trial.beginFault('disk')
    disk!.fill(ROOM_BYTES)
    const before = load.unavailable
    const until = { timeoutMs: 120_000, everyMs: 1 }
    await eventually(async () => {
      await trial.sender.send({ bufferId: 'held', groupKey: 'ok-held', bytes: 100_000 })
      return load.unavailable > before + 8
    }, until)
    expect(disk!.freeBytes).to.be.below(ROOM_BYTES)
  })

  const health = async () => {
    const answer = await fetch(`${trial.installation.service.url}/health`)
    const { checks } = (await answer.json()) as { checks: Record<string, string> }
    return { status: answer.status, inboxes: checks.inboxes }
  }

  it('tells so by /health', async () => {
    const told = { status: 503, inboxes: 'down' }
    await eventually(async () => expect(await health()).to.deep.equal(told), { timeoutMs: 60_000 })
  })

  it('goes on by itself once there is room', async () => {
    disk!.clear()
    const { accepted } = load
    await eventually(() => load.accepted > accepted + 200, { timeoutMs: 60_000 })
    const told = { status: 200, inboxes: 'ok' }
    await eventually(async () => expect(await health()).to.deep.equal(told), { timeoutMs: 60_000 })
    fault.to = Date.now()
    await letGo(trial)
  })

  it('and the whole history holds: each once, and no credit for a refusal', async () => {
    await within(load.stop(), 30_000, 'the writers do not end')
    await trial.judge()
  })
})
