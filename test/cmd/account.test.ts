import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { hashOf } from '../../internal/auth/secret.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { freshDatabase } from '../support/servers.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'cmd', 'account', 'main.ts')

describe('npm run account', () => {
  let databaseUrl: string
  before(async () => {
    databaseUrl = await freshDatabase()
  })

  const account = (...args: string[]) =>
    promisify(execFile)(process.execPath, [MAIN, ...args], {
      env: { PATH: process.env.PATH, PENSTOCK_DATABASE_URL: databaseUrl },
    })
  const refusal = async (...args: string[]) => {
    const error = await account(...args).then(
      () => undefined,
      (reason: { code: number; stderr: string }) => reason,
    )
    return { code: error?.code, stderr: error?.stderr }
  }

  it('prints owner keys of a new and of an existing customer, of which only hashes are stored', async () => {
    const keys = [(await account('acme')).stdout.trim(), (await account('acme')).stdout.trim()]
    for (const key of keys) expect(key).to.match(/^svk_[0-9a-f]{48}$/)
    const db = connect(databaseUrl, { max: 1 })
    const rows = await db<{ hash: Uint8Array; role: string }[]>`
      SELECT hash, role FROM api_keys WHERE customer_id = 'acme' ORDER BY created_at`
    await db.end()
    expect(rows.map(({ role }) => role)).to.deep.equal(['owner', 'owner'])
    expect(rows.map(({ hash }) => Buffer.from(hash).toString('hex')).sort()).to.deep.equal(
      keys.map(hashOf).sort(),
    )
  })

  it('refuses bad ids and a missing argument in one line', async () => {
    expect(await refusal('no/slash')).to.deep.include({ code: 1 })
    expect((await refusal('no/slash')).stderr).to.match(/^customerId.*\n$/)
    expect(await refusal()).to.deep.equal({ code: 2, stderr: 'usage: npm run account -- <customerId>\n' })
  })
})
