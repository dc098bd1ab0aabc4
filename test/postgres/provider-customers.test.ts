/** Customers of a payment provider, and its mode (docs/architecture/billing.md, "A payment provider"). */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { connect, type Database } from '../../internal/postgres/connection.ts'
import { claimProviderMode, createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { eventually } from '../support/eventually.ts'
import { insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const WAIT = { timeoutMs: 30_000 }

describe('postgres: customers of a payment provider', function () {
  this.timeout(60_000)
  let db: Database

  before(async () => {
    db = connect(await freshDatabase(), { max: 8, idleInTransactionTimeoutMs: 60_000 })
  })
  after(() => db?.end({ timeout: 2 }))

  const failure = (work: Promise<unknown>) =>
    work.then(
      () => 'nothing failed',
      (error: Error) => error.message,
    )

  it('are one an account: the first that is kept', async () => {
    const customers = createProviderCustomers(db)
    const account = await insertCustomer(db, 0)
    expect(await customers.find('shop', account)).to.equal(undefined)
    const kept = await Promise.all(
      [1, 2, 3].map((n) => customers.keep('shop', account, `cus_${n}-${account}`)),
    )
    expect(new Set(kept).size).to.equal(1)
    expect(await customers.find('shop', account)).to.equal(kept[0])
    expect(await customers.find('other', account)).to.equal(undefined)
  })

  it('are never those of another account', async () => {
    const customers = createProviderCustomers(db)
    const [first, second] = [await insertCustomer(db, 0), await insertCustomer(db, 0)]
    await customers.keep('shop', first, `cus_of-${first}`)
    expect(await failure(customers.keep('shop', second, `cus_of-${first}`))).to.match(/another account's/)
    expect(await customers.find('shop', second)).to.equal(undefined)
  })

  it('are replaced once, and stay known', async () => {
    const customers = createProviderCustomers(db)
    const account = await insertCustomer(db, 0)
    const gone = await customers.keep('shop', account, `cus_old-${account}`)
    const changes = await Promise.all(
      [1, 2, 3].map((n) => customers.replace('shop', account, { gone, made: `cus_${n}-${account}` })),
    )
    expect(changes.filter(({ isNew }) => isNew)).to.have.length(1)
    expect(new Set(changes.map(({ kept }) => kept)).size).to.equal(1)
    expect(changes[0]!.kept).to.not.equal(gone)
    expect(await customers.find('shop', account)).to.equal(changes[0]!.kept)
    const late = await customers.replace('shop', account, { gone, made: `cus_4-${account}` })
    expect(late).to.deep.equal({ kept: changes[0]!.kept, isNew: false })
    const former = await db`
      SELECT provider_customer_id FROM former_provider_customers WHERE customer_id = ${account}`
    expect([...former]).to.deep.equal([{ provider_customer_id: gone }])
  })

  it('are of one mode of the provider, which changes only while there are none', async () => {
    const account = await insertCustomer(db, 0)
    const [test, live] = [createProviderCustomers(db, 'test'), createProviderCustomers(db, 'live')]
    expect(await failure(test.keep('modes', account, 'cus_1'))).to.match(/not of the test mode/)
    expect(await claimProviderMode(db, 'modes', 'test')).to.equal('test')
    expect(await claimProviderMode(db, 'modes', 'live')).to.equal('live')
    expect(await failure(test.keep('modes', account, 'cus_1'))).to.match(/not of the test mode/)
    await live.keep('modes', account, 'cus_2')
    expect(await claimProviderMode(db, 'modes', 'test')).to.equal('live')
    const change = { gone: 'cus_2', made: 'cus_3' }
    expect(await failure(test.replace('modes', account, change))).to.match(/not of the test mode/)
    expect(await live.find('modes', account)).to.equal('cus_2')
    expect(await claimProviderMode(db, 'modes', 'live')).to.equal('live')
  })

  it('keep their mode while one is being kept', async () => {
    const account = await insertCustomer(db, 0)
    await claimProviderMode(db, 'race', 'test')
    const [kept, committed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const keeping = db.begin(async (transaction) => {
      await transaction`SELECT FROM provider_modes WHERE provider = 'race' FOR SHARE`
      await transaction`
        INSERT INTO provider_customers (provider, customer_id, provider_customer_id)
        VALUES ('race', ${account}, 'cus_1')`
      kept.resolve()
      await committed.promise
    })
    await kept.promise
    const claimed = claimProviderMode(db, 'race', 'live')
    await eventually(async () => {
      const waiting = await db`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
      expect(waiting).to.have.length(1)
    }, WAIT)
    committed.resolve()
    await keeping
    expect(await claimed).to.equal('test')
  })

  it('take the mode of the key that comes first when they were there before it was kept', async () => {
    const account = await insertCustomer(db, 0)
    await createProviderCustomers(db).keep('elder', account, 'cus_1')
    expect(await claimProviderMode(db, 'elder', 'test')).to.equal('test')
    expect(await claimProviderMode(db, 'elder', 'live')).to.equal('test')
  })
})
