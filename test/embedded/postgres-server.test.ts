import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import postgres from 'postgres'

import { POSTGRES, userOf } from '../../internal/embedded/server-user.ts'
import { eventually } from '../support/eventually.ts'
import { ownPostgres } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('the embedded Postgres server', () => {
  it('keeps what was committed, and its address, over a kill with open sessions and a restart', async () => {
    const server = await ownPostgres()
    const { url } = server
    const session = postgres(url, { max: 1, onclose: () => {} })
    await session`CREATE TABLE kept AS SELECT 7 AS value`
    server.kill('SIGKILL')
    await server.restart()
    await session.end({ timeout: 0 })
    expect(server.url).to.equal(url)
    expect(await query(url, 'SELECT value FROM kept')).to.deep.equal([{ value: 7 }])
    await server.stop()
  })

  it('lets nobody in without its password, and listens on 127.0.0.1 alone', async () => {
    const server = await ownPostgres()
    const refusal = await query(server.url.replace(/:[^:@]+@/, ':wrong@'), 'SELECT 1').catch((error) => error)
    const refused = await query(server.url.replace('127.0.0.1', '127.0.0.2'), 'SELECT 1').catch(
      (error) => error,
    )
    expect(refusal.code).to.equal('28P01')
    expect(refused.code).to.equal('ECONNREFUSED')
    await server.stop()
  })

  it('stops the server that a killed process left on its folder, and goes on with its data', async () => {
    const dir = join(tempFolder(), 'postgres')
    const left = await ownPostgres({ dir })
    await query(left.url, 'CREATE TABLE kept AS SELECT 7 AS value')
    const server = await ownPostgres({ dir })
    await eventually(() => !left.running)
    expect(await query(server.url, 'SELECT value FROM kept')).to.deep.equal([{ value: 7 }])
    await server.stop()
  })

  it('stops one that was killed off its parent before it had written its id', async () => {
    const dir = join(tempFolder(), 'postgres')
    const left = await ownPostgres({ dir })
    rmSync(join(dir, 'data', 'postmaster.pid'))
    const server = await ownPostgres({ dir })
    await eventually(() => !left.running)
    expect(await query(server.url, 'SELECT 1 AS one')).to.deep.equal([{ one: 1 }])
    await server.stop()
  })

  it('waits for a killed one that nobody has reaped yet', async () => {
    const dir = join(tempFolder(), 'postgres')
    await (await ownPostgres({ dir })).stop()
    const data = join(dir, 'data')
    const { id, reap } = await zombie()
    writeFileSync(join(data, 'postmaster.pid'), `${id}\n${data}\n`)
    const starting = ownPostgres({ dir })
    await eventually(() => readFileSync(join(dir, 'postgres.log'), 'utf8').includes('already exists'))
    reap()
    const server = await starting
    expect(await query(server.url, 'SELECT 1 AS one')).to.deep.equal([{ one: 1 }])
    await server.stop()
  })

  it('runs under a folder that is closed to all others', async () => {
    const closed = join(tempFolder(), 'closed')
    mkdirSync(closed)
    chmodSync(closed, 0o700)
    const server = await ownPostgres({ dir: join(closed, 'postgres') })
    expect(await query(server.url, 'SELECT 1 AS one')).to.deep.equal([{ one: 1 }])
    await server.stop()
  })

  it('speaks UTF-8 and UTC, whatever the machine speaks', async () => {
    const server = await ownPostgres()
    const [row] = await query(
      server.url,
      `SELECT current_setting('server_encoding') AS encoding, current_setting('TimeZone') AS zone, lower('ÄÉ') AS lower`,
    )
    expect(row).to.deep.equal({ encoding: 'UTF8', zone: 'UTC', lower: 'äé' })
    await server.stop()
  })
})

/** A dead process of the user that Postgres runs as, whose parent does not care. */
async function zombie(): Promise<{ id: number; reap: () => void }> {
  const parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 600'], { ...userOf(POSTGRES) })
  const [line] = await once(parent.stdout, 'data')
  return { id: Number(line), reap: () => parent.kill('SIGKILL') }
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, connect_timeout: 5 })
  try {
    return [...(await sql.unsafe(text))]
  } finally {
    await sql.end({ timeout: 1 })
  }
}
