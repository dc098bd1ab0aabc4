import { expect } from 'chai'
import { describe, it } from 'mocha'
import postgres from 'postgres'

import { freshDatabase, natsAccount, natsConnection } from '../support/servers.ts'

describe('the shared test servers', () => {
  it('give each caller a database of its own', async () => {
    const [one, other] = await Promise.all([freshDatabase(), freshDatabase()])
    const sql = postgres(one, { max: 1 })
    const otherSql = postgres(other, { max: 1 })
    await sql`CREATE TABLE mine (id int)`
    const found = await otherSql`SELECT 1 FROM pg_tables WHERE tablename = 'mine'`
    await Promise.all([sql.end(), otherSql.end()])
    expect(found).to.have.length(0)
  })

  it('give each caller a JetStream account of its own', async () => {
    const [one, other] = [
      await natsConnection(await natsAccount()),
      await natsConnection(await natsAccount()),
    ]
    const manager = await one.jetstreamManager()
    await manager.streams.add({ name: 'INBOX_0', subjects: ['items.0.>'] })
    const names = await (await other.jetstreamManager()).streams.names().next()
    expect(names).to.deep.equal([])
    await Promise.all([one.close(), other.close()])
  })
})
