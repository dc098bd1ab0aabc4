import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { checkSchema, migrate, NewerSchemaError, OlderSchemaError } from '../../internal/postgres/migrate.ts'
import { emptyDatabase } from '../support/servers.ts'

describe('migrate', () => {
  let url: string
  let db: Database
  let folder: string
  const files = () => pathToFileURL(`${folder}/`)
  const applied = async () =>
    (await db`SELECT name FROM schema_migrations ORDER BY name`).map(({ name }) => name)

  beforeEach(async () => {
    url = await emptyDatabase()
    db = connect(url)
    folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  })
  afterEach(async () => {
    await db.end()
    await rm(folder, { recursive: true })
  })

  it('brings an empty database to the schema, and does nothing the second time', async () => {
    await migrate(url)
    const first = await db`SELECT * FROM schema_migrations ORDER BY name`
    await migrate(url)
    expect([...(await db`SELECT * FROM schema_migrations ORDER BY name`)]).to.deep.equal([...first])
    expect([...(await db`SELECT version FROM config_version`)]).to.deep.equal([{ version: 0 }])
  })

  it('lets starters that arrive together wait for each other', async () => {
    await writeFile(
      join(folder, '001-once.sql'),
      'CREATE TABLE once (n int); SELECT pg_sleep(0.2); INSERT INTO once VALUES (1);',
    )
    await Promise.all(Array.from({ length: 4 }, () => migrate(url, files())))
    expect((await db`SELECT * FROM once`).length).to.equal(1)
  })

  it('undoes all of a file that fails, keeps those before it, and goes on from there', async () => {
    await writeFile(join(folder, '001-good.sql'), 'CREATE TABLE good ();')
    await writeFile(join(folder, '002-bad.sql'), 'CREATE TABLE half (); SELECT nonsense;')
    const error = await migrate(url, files()).catch((reason) => reason)
    expect(error.message).to.contain('002-bad.sql').and.to.contain('nonsense')
    expect(await applied()).to.deep.equal(['001-good.sql'])
    expect([...(await db`SELECT to_regclass('half')::text AS half`)]).to.deep.equal([{ half: null }])
    await writeFile(join(folder, '002-bad.sql'), 'CREATE TABLE half ();')
    await migrate(url, files())
    expect(await applied()).to.deep.equal(['001-good.sql', '002-bad.sql'])
  })

  it('refuses a database that a newer version has changed, and changes nothing', async () => {
    await writeFile(join(folder, '001-known.sql'), 'CREATE TABLE known ();')
    await migrate(url, files())
    await db`INSERT INTO schema_migrations (name) VALUES ('999-future.sql')`
    await writeFile(join(folder, '002-next.sql'), 'CREATE TABLE next ();')
    const refused = await migrate(url, files()).catch((reason) => reason)
    expect(refused).to.be.instanceOf(NewerSchemaError)
    expect(refused.message).to.contain('999-future.sql')
    expect([...(await db`SELECT to_regclass('next')::text AS next`)]).to.deep.equal([{ next: null }])
    expect(await checkSchema(db, files()).catch((reason) => reason)).to.be.instanceOf(NewerSchemaError)
  })

  it('tells who does not migrate what is missing', async () => {
    const older = await checkSchema(db).catch((reason) => reason)
    expect(older).to.be.instanceOf(OlderSchemaError)
    expect(older.message).to.contain('001-accounts.sql')
    await migrate(url)
    await checkSchema(db)
  })

  it('refuses a file whose name would have no place in the order', async () => {
    await writeFile(join(folder, 'late.sql'), 'SELECT 1')
    const error = await migrate(url, files()).catch((reason) => reason)
    expect(error.message).to.contain('late.sql')
  })
})

describe('node cmd/migrate/main.ts', () => {
  const main = new URL('../../cmd/migrate/main.ts', import.meta.url).pathname
  const run = (databaseUrl: string) =>
    promisify(execFile)(process.execPath, [main], { env: { PENSTOCK_DATABASE_URL: databaseUrl } })

  it('migrates, or ends with one line that names the reason', async function () {
    this.timeout(120_000)
    const url = await emptyDatabase()
    expect((await run(url)).stdout).to.equal('The schema is up to date.\n')
    const missing = await run(url.replace(/[^/]+$/, 'no_such_database')).catch((error) => error)
    expect(missing.code).to.equal(1)
    expect(missing.stderr).to.match(/^.*no_such_database.*\n$/)
    const unset = await run('').catch((error) => error)
    expect(unset.stderr).to.match(/^PENSTOCK_DATABASE_URL: .*\n$/)
  })
})
