/** The Postgres client on a bad network: no process ends, and no query waits for ever. */
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/servers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

const RESETS = 40
const ASKING = 12
const SILENCE_MS = 5_500

describe('the Postgres client on a bad network', function () {
  this.timeout(120_000)
  let proxy: TcpProxy
  let db: Database

  beforeEach(async () => {
    const url = await freshDatabase()
    proxy = await TcpProxy.to(Number(new URL(url).port))
    db = connect(proxy.through(url), { max: 4, statementTimeoutMs: 1_000 })
  })
  afterEach(async () => {
    proxy.heal()
    await db.end({ timeout: 1 })
    await proxy.close()
  })

  it('goes on after connections that are cut in the midst of whatever they do', async () => {
    const uncaught: unknown[] = []
    const note = (error: unknown) => uncaught.push(error)
    const others = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', note)
    let over = false
    let answered = 0
    try {
      const ask = async (n: number) => {
        if (n % 2 === 0) await db`SELECT ${'x'.repeat(n * 200)}::text, ${[n]}::int[]`
        else await db.begin((sql) => Promise.all([sql`SELECT ${n}::int`, sql`SELECT pg_sleep(0.002)`]))
        answered++
      }
      const asking = Array.from({ length: ASKING }, async (_, n) => {
        while (!over) await ask(n).catch(() => {})
      })
      for (let reset = 0; reset < RESETS; reset++) {
        const target = answered + 5
        await eventually(() => answered >= target, { timeoutMs: 20_000 })
        proxy.reset()
      }
      const target = answered + 10 * ASKING
      await eventually(() => answered >= target, { timeoutMs: 20_000 })
      over = true
      await Promise.all(asking)
    } finally {
      over = true
      process.removeAllListeners('unhandledRejection')
      for (const listener of others) process.on('unhandledRejection', listener)
    }
    expect(uncaught).to.deep.equal([])
  })

  for (const direction of ['up', 'down'] as const) {
    it(`gives up what is not answered, and asks anew, when nothing passes ${direction}`, async () => {
      await db`SELECT 1`
      proxy.silence(direction)
      const refused = await db`SELECT 2`.catch((error: unknown) => error)
      expect(refused).to.include({ code: 'ETIMEDOUT' })
      proxy.heal()
      await eventually(async () => expect([...(await db`SELECT 3 AS three`)]).to.deep.equal([{ three: 3 }]))
    })
  }

  it('rejects what is asked while whatever stands before the server takes connections and closes them', async () => {
    let closed = 0
    const balancer = createServer((socket) => {
      closed++
      socket.resume().end()
    })
    await new Promise<void>((resolve) => balancer.listen(0, '127.0.0.1', resolve))
    const { port } = balancer.address() as AddressInfo
    const behind = connect(`postgres://postgres@127.0.0.1:${port}/postgres`, { max: 2 })
    try {
      const asked = [behind`SELECT 1`, behind.begin((sql) => sql`SELECT 2`), behind`SELECT 3`]
      const settled = await Promise.allSettled(asked)
      const codes = settled.map(
        (each) => each.status === 'rejected' && (each.reason as { code: string }).code,
      )
      expect(codes).to.deep.equal(Array(3).fill('CONNECTION_CLOSED'))
      // One a question: it does not try on its own, and without a pause between them.
      expect(closed).to.be.at.most(3)
    } finally {
      await behind.end({ timeout: 1 })
      await new Promise((resolve) => balancer.close(resolve))
    }
  })

  it('keeps connections that ask for nothing', async () => {
    const told: string[] = []
    await db.listen('calls', (payload) => told.push(payload))
    const listeners = () => db`
      SELECT pid FROM pg_stat_activity WHERE query ILIKE 'listen%' AND datname = current_database()`
    const before = [...(await listeners())]
    expect(before).to.have.length(1)
    // The bound is what is tested: a second of the statement, four of the network.
    await delay(SILENCE_MS)
    expect([...(await listeners())]).to.deep.equal(before)
    await db.notify('calls', 'still there')
    await eventually(() => expect(told).to.deep.equal(['still there']))
  })
})
