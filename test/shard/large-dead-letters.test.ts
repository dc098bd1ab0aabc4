/** Dead letters of every allowed size over a slow line to Postgres (docs/architecture/protocol.md, "Dead letters"). */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { eventually } from '../support/eventually.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { ownersOfEachTest } from './owners.ts'

const MBIT = 1_000_000 / 8
const LARGE = 8
const SMALL = 20
/** A batch of 16 MiB, the most that a buffer may ask for, in items of a mebibyte. */
const ITEMS = 16
const PAD = 1024 * 1024
/** Closed when it is full, and by nothing else. */
const BATCH = {
  maxItems: ITEMS,
  maxBytes: ITEMS * PAD,
  idleTimeoutMs: 3_600_000,
  maxWaitFromFirstMs: 3_600_000,
}
/** The machine may be busy; that what is awaited comes before the rest is what counts. */
const WITHIN = { timeoutMs: 120_000 }
/** Room for all of them in the inbox. */
const STORE_BYTES = 1024 * 1024 * 1024

describe('large dead letters over a slow line', function () {
  this.timeout(600_000)
  const here = ownersOfEachTest({ batch: BATCH, destination: () => 400 }, STORE_BYTES)
  let line: TcpProxy
  let slow: Database

  beforeEach(async () => {
    const { host, port, database, pass, user } = here.db.options
    line = await TcpProxy.to(port[0]!)
    const password = typeof pass === 'string' ? pass : ''
    slow = connect(`postgres://${user}:${password}@${host[0]}:${line.port}/${database}`, { max: 8 })
  })
  afterEach(async () => {
    await slow.end({ timeout: 1 })
    await line.close()
  })

  /** One group that is full, in packs that the broker takes. */
  const ingest = async (key: string, pad: number) => {
    const items = Array.from({ length: ITEMS }, (_, n) => ({ key, n, pad }))
    for (let from = 0; from < ITEMS; from += 4) await here.ingest(items.slice(from, from + 4))
  }

  const stored = async () => {
    const rows = await here.db<{ large: boolean }[]>`SELECT payload_bytes > ${PAD} AS large FROM dlq_items`
    const largeOnes = rows.filter((row) => row.large).length
    return { large: largeOnes, small: rows.length - largeOnes }
  }

  it('are stored one after the other, and small ones that come later do not wait for them', async () => {
    const owner = await here.own({ db: slow })
    line.throttle(20 * MBIT)
    for (let n = 0; n < LARGE; n++) await ingest(`large-${n}`, PAD - 64)
    await eventually(() => owner.sent.length === LARGE, WITHIN)
    for (let n = 0; n < SMALL; n++) await ingest(`small-${n}`, 0)
    await eventually(async () => expect((await stored()).small).to.equal(SMALL), WITHIN)
    expect((await stored()).large).to.be.below(LARGE)
    await eventually(async () => expect((await stored()).large).to.be.above(0), WITHIN)
    // That they are stored over such a line is shown; the others need not take a minute.
    line.heal()
    await eventually(async () => expect((await stored()).large).to.equal(LARGE), WITHIN)
  })
})
