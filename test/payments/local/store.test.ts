/** The document of the local payment provider on the real Postgres. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../../internal/postgres/connection.ts'
import { createLocalPaymentStore } from '../../../internal/postgres/local-payments.ts'
import { freshDatabase } from '../../support/servers.ts'

interface Counter {
  count: number
  text?: string
}

describe('the document of the local payment provider', () => {
  let url: string
  let db: Database
  let other: Database

  before(async () => {
    url = await freshDatabase()
    db = connect(url, { max: 4 })
    other = connect(url, { max: 4 })
  })
  after(() => Promise.all([db.end(), other.end()]))
  beforeEach(() => db`UPDATE local_payments SET document = NULL`)

  it('is not there before the first change', async () => {
    const store = createLocalPaymentStore<Counter>(db)
    expect(await store.read()).to.equal(undefined)
    const seen = await store.change((document) => ({ document: { count: 1 }, result: document }))
    expect(seen).to.equal(undefined)
    expect(await store.read()).to.deep.equal({ count: 1 })
  })

  it('loses no change of two processes at once', async () => {
    const stores = [createLocalPaymentStore<Counter>(db), createLocalPaymentStore<Counter>(other)]
    const counted = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        stores[n % 2]!.change(({ count } = { count: 0 }) => ({
          document: { count: count + 1 },
          result: count + 1,
        })),
      ),
    )
    expect(counted.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 40 }, (_, n) => n + 1))
    expect(await stores[0]!.read()).to.deep.equal({ count: 40 })
  })

  it('stays as it was when a change throws', async () => {
    const store = createLocalPaymentStore<Counter>(db)
    await store.change(() => ({ document: { count: 1 }, result: undefined }))
    const thrown = new Error('no')
    const refused = await store
      .change(() => {
        throw thrown
      })
      .catch((error) => error)
    expect(refused).to.equal(thrown)
    expect(await store.read()).to.deep.equal({ count: 1 })
  })

  it('keeps every text', async () => {
    const store = createLocalPaymentStore<Counter>(db)
    const document = { count: 1, text: '\u0000 \ud83d\ude00 "\\ \u2028' }
    await store.change(() => ({ document, result: undefined }))
    expect(await store.read()).to.deep.equal(document)
  })

  it('is one', async () => {
    const refused = await db`INSERT INTO local_payments DEFAULT VALUES`.catch((error) => error)
    expect(refused.code).to.equal('23505')
  })
})
