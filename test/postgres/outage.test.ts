import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createConfigFeed } from '../../internal/postgres/config-feed.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import { accountsNode, bufferBody, principal, refusal } from '../support/accounts.ts'
import { eventually } from '../support/eventually.ts'
import { ownPostgres } from '../support/servers.ts'

const acme = principal('acme')

describe('an outage of Postgres', () => {
  it('refuses with 503, serves what is cached, and is over when the server is back', async function () {
    this.timeout(120_000)
    const server = await ownPostgres()
    await migrate(server.url)
    const [writer, reader] = [await accountsNode(server.url), await accountsNode(server.url)]
    const { db, clock, bufferCache } = reader
    const failures: unknown[] = []
    const feed = createConfigFeed({
      db,
      clock,
      pollMs: 50,
      onError: (error) => failures.push(error),
      listeners: [{ entity: 'buffer', ...bufferCache }],
    })
    await writer.customers.ensure('acme')
    await writer.projects.create(acme, { projectId: 'p', name: 'x' })
    await writer.buffers.create(acme, bufferBody('b', 'p'))
    await feed.start()
    await bufferCache.loadById('b')

    await server.stop()
    expect(await refusal(writer.buffers.read(acme, 'b'))).to.include({ status: 503 })
    expect((await bufferCache.loadById('b'))?.buffer.name).to.equal('Orders')
    await eventually(() => failures.length > 0)
    const cold = await bufferCache.loadById('c').catch((error) => error)
    expect(cold.status).to.equal(503)

    await server.restart()
    await eventually(() => writer.buffers.update(acme, 'b', { name: 'back' }))
    await eventually(() => bufferCache.peekById('b')?.buffer.name === 'back')
    expect(await bufferCache.loadById('c')).to.equal(undefined)
    await feed.stop()
    await Promise.all([writer.close(), reader.close()])
    await server.stop()
  })
})
