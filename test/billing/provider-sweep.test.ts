import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { ProviderSweeps } from '../../internal/billing/ports.ts'
import { createProviderSweep, SWEEP_EVERY_MS } from '../../internal/billing/provider-sweep.ts'
import { createProviderSweeps } from '../../internal/postgres/provider-sweeps.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { eventually } from '../support/eventually.ts'
import { PERIOD, providerHarnessOfSuite, START } from './provider-harness.ts'

const PROGRAM = join(import.meta.dirname, 'sweeping-node.ts')

describe('billing: the sweep of a payment provider', () => {
  const on = providerHarnessOfSuite()
  let sweeps: ProviderSweeps
  const failed: string[] = []

  beforeEach(async () => {
    await on.db`DELETE FROM provider_sweeps`
    sweeps = createProviderSweeps(on.db)
    failed.length = 0
  })

  const sweptUntil = async (): Promise<number | undefined> => {
    const [row] = await on.db<{ swept_until: Date | null }[]>`SELECT swept_until FROM provider_sweeps`
    return row?.swept_until?.getTime()
  }

  /** Of a node. */
  const sweep = (clock = systemClock()) =>
    createProviderSweep({
      provider: on.provider,
      sweeps,
      events: on.events(),
      clock,
      onFailed: (error) => failed.push(String(error)),
    })
  const since = () => on.provider.asked.flatMap((asked) => (asked.call === 'changes' ? [asked.since] : []))
  const age = (ms: number) => on.db`
    UPDATE provider_sweeps SET swept_until = swept_until - ${ms}::int * interval '1 millisecond'`

  it('reads what no notification told: all at first, then what changed', async () => {
    on.set(on.subscription(), on.invoice(), on.pack())
    const node = sweep()
    expect(node.lagMs()).to.be.within(0, 60_000)
    expect(await node.run()).to.deep.equal({ read: 3, later: 0 })
    expect(await on.account()).to.include({ credits: 160 })
    expect((await on.current())?.status).to.equal('ACTIVE')
    expect(since()).to.deep.equal([0])
    expect(node.lagMs()).to.be.within(0, 60_000)

    on.set(on.subscription({ status: 'CANCELLING' }), on.invoice(1))
    expect(await node.run(), 'not due').to.equal(undefined)
    await age(SWEEP_EVERY_MS)
    const last = (await sweptUntil())!
    expect(await node.run()).to.deep.equal({ read: 4, later: 0 })
    expect(since()[1]).to.equal(last - 600_000)
    expect((await on.current())?.status).to.equal('CANCELLING')
    expect(await on.account()).to.include({ credits: 260 })
  })

  for (const [what, aheadMs] of [
    ['behind', -86_400_000],
    ['ahead of', 86_400_000],
  ] as const) {
    it(`is due by Postgres’ clock when that of the node is ${what} it`, async () => {
      const node = sweep({ ...systemClock(), now: () => Date.now() + aheadMs })
      expect(await node.run()).to.deep.equal({ read: 0, later: 0 })
      expect(await node.run(), 'not due').to.equal(undefined)
      expect(node.lagMs()).to.be.within(0, 60_000)
      await age(SWEEP_EVERY_MS)
      expect(node.lagMs()).to.be.within(0, 60_000)
      expect(await node.run()).to.deep.equal({ read: 0, later: 0 })
      expect(await sweep({ ...systemClock(), now: () => Date.now() + aheadMs }).run(0)).to.deep.equal({
        read: 0,
        later: 0,
      })
    })
  }

  it('tells its lag also while it is not due', async () => {
    await sweep().run()
    await age(SWEEP_EVERY_MS / 2)
    const node = sweep()
    await node.run()
    expect(node.lagMs()).to.be.within(SWEEP_EVERY_MS / 2, SWEEP_EVERY_MS / 2 + 60_000)
  })

  it('is run by one of several nodes that start together', async () => {
    on.set(on.subscription())
    const results = await Promise.all([sweep().run(), sweep().run(), sweep().run()])
    expect(results.filter((result) => result !== undefined)).to.have.length(1)
  })

  it('begins where the last one did after one that failed', async () => {
    const node = sweep()
    await node.run()
    await age(2 * SWEEP_EVERY_MS)
    const last = (await sweptUntil())!
    on.provider.failing = true
    expect(await node.run().catch((error: Error) => error.message)).to.equal('the provider says 500')
    expect(await sweptUntil()).to.equal(last)
    expect(node.lagMs()).to.be.at.least(SWEEP_EVERY_MS)
    on.provider.failing = false
    expect(await node.run()).to.deep.equal({ read: 0, later: 0 })
    expect(since().at(-1)).to.equal(last - 600_000)
  })

  it('reads the rest when one object cannot be used, and that one again', async () => {
    on.set(on.subscription({ planId: 'none' }), on.pack())
    const node = sweep()
    expect(await node.run()).to.deep.equal({ read: 2, later: 1 })
    expect(await node.run(), 'at once it would be the same').to.equal(undefined)
    expect((await on.account()).credits).to.equal(60)
    expect(await sweptUntil()).to.equal(undefined)
    on.set(on.subscription())
    expect(await node.run(0)).to.deep.equal({ read: 2, later: 0 })
    expect((await on.current())?.status).to.equal('ACTIVE')
  })

  it('goes on behind an object that fails, and ends when all do', async () => {
    on.set(on.subscription(), on.pack())
    let failing = [on.subscriptionId]
    on.provider.beforeAnswer = async (id) => {
      if (failing.includes(id)) throw new Error('the provider says 500')
    }
    expect(await sweep().run()).to.deep.equal({ read: 2, later: 1 })
    expect(failed).to.deep.equal(['Error: the provider says 500'])
    expect((await on.account()).credits).to.equal(60)
    on.set(on.invoice(1), on.invoice(2), on.invoice(3))
    failing = [...on.provider.objects.keys()]
    const message = await sweep()
      .run(0)
      .catch((error: Error) => error.message)
    expect(message).to.equal('the provider says 500')
    expect(await sweptUntil()).to.equal(undefined)
  })

  it('counts failures one after the other, and of one sweep', async () => {
    const bad = [on.subscription(), on.invoice(1)]
    const rest = [on.invoice(2), on.invoice(3)]
    on.set(...bad)
    const failing = [...on.provider.objects.keys()]
    on.provider.beforeAnswer = async (id) => {
      if (failing.includes(id)) throw new Error('the provider says 500')
    }
    for (let time = 0; time < 2; time++) expect(await sweep().run(0)).to.deep.equal({ read: 2, later: 2 })
    const node = sweep()
    for (let time = 0; time < 2; time++) expect(await node.run(0)).to.deep.equal({ read: 2, later: 2 })
    on.set(on.pack(), ...rest)
    failing.push(...rest.map(({ invoiceId }) => invoiceId))
    expect(await node.run(0)).to.deep.equal({ read: 5, later: 4 })
  })

  it('reads once what is listed several times', async () => {
    on.set(on.pack())
    const { provider } = on
    const changes = provider.changes.bind(provider)
    provider.changes = async function* (from) {
      yield* changes(from)
      yield* changes(from)
    }
    expect(await sweep().run()).to.deep.equal({ read: 1, later: 0 })
  })

  it('has read what changed until it began, and no more', async () => {
    on.set(on.subscription())
    let during = 0
    on.provider.beforeAnswer = async () => {
      const [row] = await on.db<{ now: Date }[]>`SELECT clock_timestamp() AS now`
      during = row!.now.getTime()
      await on.db`SELECT pg_sleep(0.01)`
    }
    await sweep().run()
    expect(await sweptUntil()).to.be.at.most(during)
  })

  it('ends before the next object when the node stops', async () => {
    on.set(on.subscription(), on.pack())
    let asked = 0
    expect(await sweep().run(0, () => ++asked > 1)).to.deep.equal({ read: 1, later: 1 })
    expect(await sweptUntil()).to.equal(undefined)
  })

  it('finds what a node left between the provider’s yes and its row', async () => {
    await on.tell(on.subscription())
    on.set(on.subscription({ status: 'CANCELLED', currentPeriodEnd: START + PERIOD }))
    await sweep().run()
    expect((await on.current())?.status).to.equal('CANCELLED')
  })

  /** A node that has claimed the sweep, and is still at it. */
  async function sweepingNode(): Promise<ChildProcess> {
    const node = spawn(process.execPath, [PROGRAM, on.databaseUrl], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(node.stdout!, 'data')
    return node
  }

  it('is done by another node as soon as the one that claimed it is killed', async () => {
    const node = await sweepingNode()
    expect(await sweep().run(), 'it lives').to.equal(undefined)
    node.kill('SIGKILL')
    await eventually(async () => expect(await sweep().run()).to.deep.equal({ read: 0, later: 0 }))
  })

  it('goes on when its node loses the connection of its claim', async () => {
    on.set(on.subscription(), on.invoice())
    let joined: unknown
    on.provider.beforeAnswer = async () => {
      on.provider.beforeAnswer = async () => {}
      await on.db`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted`
      joined = await sweep().run(0)
    }
    const mine = sweep().run(0)
    expect(await mine).to.deep.equal({ read: 2, later: 0 })
    expect(joined).to.deep.equal({ read: 2, later: 0 })
    expect(await sweptUntil()).to.be.a('number')
    expect(await on.account()).to.include({ credits: 110 })
  })
})
