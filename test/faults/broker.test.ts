/** The broker away under load (fault matrix, row 5): refusals meanwhile, and every 202 is kept. */
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import { startLoad } from './crash.ts'
import type { Fault } from './history.ts'
import type { Load } from './load.ts'
import { createLoadBuffers } from './load-buffers.ts'
import { Trial, within } from './trial.ts'

const SEED = 19

describe('a broker that is away under load', function () {
  this.timeout(120_000)
  let trial: Trial
  let load: Load
  let fault: Fault | undefined

  before(async () => {
    trial = await Trial.open({ label: 'broker', seed: SEED, servers: 'own', sync: 'always' })
    await createLoadBuffers(trial)
    load = startLoad(trial, { writers: 16, pauseMs: 40 })
    await eventually(() => load.accepted > 100, { timeoutMs: 30_000 })
  })
  afterEach(() => endFault())
  after(async () => {
    if (trial?.own?.nats.running) trial.own.nats.kill('SIGCONT')
    await load?.stop()
    await trial?.close()
  })

  function beginFault(kind: string): void {
    fault = trial.beginFault(kind)
  }

  function endFault(): void {
    if (fault) fault.to = Date.now()
    fault = undefined
  }

  async function goesOn(): Promise<void> {
    const { accepted } = load
    await eventually(() => load.accepted > accepted + 200, { timeoutMs: 30_000 })
    await eventually(async () => (await fetch(`${trial.installation.service.url}/health`)).status === 200)
  }

  it('stopped until requests are refused, then continued: 503 meanwhile, then all goes on', async () => {
    const { nats } = trial.own!
    beginFault('nats-stopped')
    nats.kill('SIGSTOP')
    await eventually(() => load.unavailable > 0, { timeoutMs: 20_000 })
    const refused = trial.history.sent.filter(({ answer }) => answer?.status === 503)
    expect(refused.every(({ sentAt, answer }) => answer!.at - sentAt < 15_000)).to.equal(true)
    nats.kill('SIGCONT')
    await goesOn()
  })

  for (const restart of [1, 2]) {
    it(`killed and started again (${restart}): all goes on`, async () => {
      const { nats } = trial.own!
      beginFault('nats-killed')
      nats.kill('SIGKILL')
      await eventually(() => !nats.running)
      await nats.restart()
      await goesOn()
    })
  }

  it('and every 202 is kept', async () => {
    await within(load.stop(), 30_000, 'the writers do not end')
    await trial.judge()
  })
})
