/** Ids that existed before ids were kept (migration 038): whose they are afterwards. */
import { randomUUID } from 'node:crypto'
import { cp, readdir } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import { emptyDatabase } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

const MIGRATIONS = new URL('../../internal/postgres/migrations/', import.meta.url)

describe('ids of projects and buffers that were there before', () => {
  let url: string
  let db: Database

  before(async () => {
    url = await emptyDatabase()
    db = connect(url)
    await migrateBefore('038')
  })
  after(() => db.end())

  async function migrateBefore(number: string): Promise<void> {
    const folder = tempFolder('migrations')
    for (const name of await readdir(MIGRATIONS)) {
      if (name < number) await cp(new URL(name, MIGRATIONS), `${folder}/${name}`)
    }
    await migrate(url, pathToFileURL(`${folder}/`))
  }

  async function buffer(customerId: string, bufferId: string, deletedDaysAgo: number | null): Promise<void> {
    await db`
      INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config, deleted_at, deleted_state)
      VALUES (${randomUUID()}, ${bufferId}, ${customerId}, ${`project-of-${customerId}`}, '{}',
        now() - ${deletedDaysAgo}::int * interval '1 day',
        ${deletedDaysAgo === null ? null : 'enabled'})`
  }

  it('belong to who has them, else to who deleted them last, else to who has figures of them', async () => {
    await db`INSERT INTO customers (customer_id, name) VALUES ('a', 'A'), ('b', 'B')`
    await db`INSERT INTO projects (project_id, customer_id, name) VALUES ('project-of-b', 'b', 'B')`
    await buffer('a', 'live', 1)
    await buffer('b', 'live', null)
    await buffer('a', 'deleted', 1)
    await buffer('b', 'deleted', 2)
    await buffer('a', 'removed', 3)
    await db`DELETE FROM buffers WHERE buffer_id = 'removed'`
    await migrate(url)
    const rows = await db<{ name: string }[]>`
      SELECT kind || ' ' || id || ' ' || customer_id AS name FROM taken_ids ORDER BY 1`
    expect(rows.map(({ name }) => name)).to.deep.equal([
      'buffer deleted a',
      'buffer live b',
      'buffer removed a',
      'project project-of-a a',
      'project project-of-b b',
    ])
  })
})
