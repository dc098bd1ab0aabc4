/** SIGTERM under load (fault matrix, row 12, for one process): a drain is no fault, so everything is exactly once. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import { startLoad } from './crash.ts'
import type { Load } from './load.ts'
import { createLoadBuffers } from './load-buffers.ts'
import { Trial, within } from './trial.ts'

const SEED = 17
const STOPS = 3

describe('a service stopped under load', function () {
  this.timeout(240_000)
  let trial: Trial
  let load: Load

  before(async () => {
    trial = await Trial.open({ label: 'stop', seed: SEED, servers: 'embedded' })
    await createLoadBuffers(trial)
    load = startLoad(trial, { writers: 16, pauseMs: 25 })
  })
  after(async () => {
    await load?.stop()
    await trial?.close()
  })

  for (let stop = 1; stop <= STOPS; stop++) {
    it(`drains, exits 0 and goes on: stop ${stop}`, async () => {
      const accepted = load.accepted
      await eventually(() => load.accepted > accepted + 150, { timeoutMs: 30_000 })
      expect(await trial.installation.stop(), trial.installation.output()).to.equal(0)
      await trial.start()
    })
  }

  it('and nothing is lost, sent twice or charged wrongly', async () => {
    await within(load.stop(), 30_000, 'the writers do not end')
    await trial.judge()
    const { deliveries, faults, sent } = trial.history
    expect(faults).to.deep.equal([])
    const delivered = new Set(deliveries.flatMap(({ items }) => items.map(({ n }) => n)))
    const untold = sent.filter(({ n, answer }) => answer === null && delivered.has(n))
    expect(untold, 'what the drain still stored, it answered').to.deep.equal([])
    const acknowledged = deliveries.filter(({ status }) => status === 200).map(({ key }) => key)
    expect(new Set(acknowledged).size).to.equal(acknowledged.length)
  })
})
