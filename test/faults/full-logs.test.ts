/**
 * Logs at their limits under load (fault matrix, rows 6 and 24), in a service whose owners report no shares: the
 * logs' own limits hold then. Refusals for everybody, nothing evicted, nothing charged, and recovery without hands.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { LogState } from '../../internal/shard/broker.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { letGo, startLoadBesideHeld } from './held-load.ts'
import type { Load } from './load.ts'
import { Trial, within } from './trial.ts'

const SEED = 23
const SHARDS = [0, 1]
const LIMITS = { INBOX: 300_000, JOURNAL: 300_000 }

describe('a service whose logs are full', function () {
  this.timeout(120_000)
  let trial: Trial
  let load: Load
  let logs: TestBroker

  before(async () => {
    const program = 'test/faults/keeping-service.ts'
    trial = await Trial.open({ label: 'full-logs', seed: SEED, servers: 'own', program })
    logs = await brokerAt(trial.own!.nats.url, SHARDS.length)
    const { streams } = await logs.connection.nats.jetstreamManager()
    for (const [log, maxBytes] of Object.entries(LIMITS)) {
      for (const shard of SHARDS) await streams.update(`${log}_${shard}`, { max_bytes: maxBytes })
    }
    load = await startLoadBesideHeld(trial)
  })
  after(async () => {
    await load?.stop()
    await logs?.close()
    await trial?.close()
  })

  function statesOf(log: 'inbox' | 'journal'): Promise<LogState[]> {
    return Promise.all(SHARDS.map((shard) => logs.broker[log](shard).state()))
  }

  it('refuses everybody once what is held fills them, and evicts nothing', async () => {
    let refused = 0
    for (let n = 0; refused < 100; n++) {
      const item = await trial.sender.send({ bufferId: 'held', groupKey: `ok-${n % 40}`, bytes: 5_000 })
      refused = item?.answer?.status === 503 ? refused + 1 : 0
    }
    const before = load.unavailable
    await eventually(() => load.unavailable > before + 50)
    // Full at the last refusal; a keep and its purge may have made some room since.
    for (const { bytes, maxBytes } of await statesOf('inbox'))
      expect(bytes).to.be.within(maxBytes * 0.5, maxBytes)
    // The owners still write down what they decide. (Carrying forward fills a journal to 95 %, and decisions come on top.)
    const health = await fetch(`${trial.installation.service.url}/health`)
    expect(await health.json()).to.deep.include({ checks: { shards: 'ok' } })
  })

  it('says so with 503 and when to come back', async () => {
    // Past the history, and so large that it cannot fit by chance.
    const url = `${trial.installation.service.url}/v1/ingest/faults/good`
    const body = JSON.stringify({ group: 'ok-full', fill: 'x'.repeat(LIMITS.INBOX * 0.8) })
    const answer = await fetch(url, { method: 'POST', body })
    expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1'])
    expect(await answer.json()).to.deep.equal({ error: 'Storage is unavailable, try again' })
  })

  it('goes on when what is held may go', async () => {
    await letGo(trial)
    const { accepted } = load
    await eventually(() => load.accepted > accepted + 200, { timeoutMs: 30_000 })
    await eventually(async () =>
      (await statesOf('inbox')).every(({ bytes, maxBytes }) => bytes < maxBytes / 2),
    )
  })

  it('and the whole history holds: each once, and no credit for a refusal', async () => {
    await within(load.stop(), 30_000, 'the writers do not end')
    await trial.judge()
  })
})
