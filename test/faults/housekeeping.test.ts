/**
 * SIGKILL around every record and request of housekeeping (fault matrix, row 7), under load, while a disabled
 * buffer holds items that housekeeping has to carry along.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import type { Which } from '../support/nats-proxy.ts'
import { startLoad } from './crash.ts'
import type { SentItem } from './history.ts'
import type { Load } from './load.ts'
import { archiving, committing, purging, removingOlder } from './strikes.ts'
import { Trial, within } from './trial.ts'

const SEED = 13
const HELD = 40

const PHASES: readonly [string, Which][] = [
  ['a keep', committing('keep')],
  ['a horizon', committing('horizon')],
  ['the first part of a snapshot', archiving('first part')],
  ['a further part of a snapshot', archiving('other part')],
  ['the end of a snapshot', archiving('end')],
  ['a purge of an inbox', purging('INBOX_')],
  ['a purge of a journal', purging('JOURNAL_')],
  ['the removal of an older snapshot', removingOlder()],
]

describe('a service killed while it keeps its logs short', function () {
  this.timeout(120_000)
  let trial: Trial
  let load: Load
  const held: SentItem[] = []

  before(async () => {
    const program = 'test/faults/keeping-service.ts'
    trial = await Trial.open({ label: 'housekeeping', seed: SEED, servers: 'own', program })
    for (const bufferId of ['good', 'rejecting', 'held']) await trial.createBuffer(bufferId)
    const patient = { idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }
    await trial.patchBuffer('held', { batch: patient })
    for (let i = 0; i < HELD; i++) {
      const item = await trial.sender.send({ bufferId: 'held', groupKey: `ok-${i % 10}`, bytes: 200 })
      if (item) held.push(item)
    }
    load = startLoad(trial, { writers: 16, pauseMs: 30 })
  })
  after(async () => {
    await load?.stop()
    await trial?.close()
  })

  for (const [phase, which] of PHASES) {
    for (const when of ['before', 'after'] as const) {
      it(`${phase}, ${when === 'before' ? 'before the broker has it' : 'after the broker has done it'}`, async () => {
        const before = load.accepted
        await trial.killAt(when, which, () => {})
        await trial.start()
        await eventually(() => load.accepted > before + 20)
      })
    }
  }

  it('and the whole history holds, with what was carried along', async () => {
    expect(held).to.have.length(HELD)
    // Under load: without it nothing outweighs what is held, and the last of it need not be carried.
    await trial.readLogs((logs) =>
      eventually(async () => (await logs.keptItems()) === HELD, { timeoutMs: 60_000, everyMs: 100 }),
    )
    await within(load.stop(), 30_000, 'the writers do not end')
    const here = new Set(trial.history.deliveries.flatMap(({ items }) => items.map(({ n }) => n)))
    expect(
      held.filter(({ n }) => here.has(n)),
      'nothing held was sent',
    ).to.deep.equal([])
    const due = { batch: { idleTimeoutMs: 100, maxWaitFromFirstMs: 100 } }
    await trial.patchBuffer('held', due)
    await trial.judge()
  })
})
