import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { createAuditReading } from '../../internal/audit/reading.ts'
import { hashOf } from '../../internal/auth/secret.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { createAuditStore } from '../../internal/postgres/audit.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { insertBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'cmd', 'account', 'main.ts')

const USAGE =
  'usage: npm run account -- <customerId> [--take-over | --keep-creator | --suspend | --resume | --revoke-keys]\n'

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

  it('suspends and resumes a customer with its buffers, and says what it did', async () => {
    await account('suspended')
    const db = connect(databaseUrl, { max: 1 })
    for (let n = 0; n < 2; n++) await insertBuffer(db, 'suspended')
    const states = async () => {
      const rows = await db<{ suspended: boolean }[]>`SELECT suspended FROM buffers`
      return rows.map(({ suspended }) => suspended)
    }
    const say = async (option: string) => (await account('suspended', option)).stdout
    expect(await say('--resume')).to.equal('suspended was not suspended: 0 buffers changed\n')
    expect(await say('--suspend')).to.equal('suspended is suspended: 2 buffers changed\n')
    expect(await states()).to.deep.equal([true, true])
    expect(await say('--suspend')).to.match(
      /^suspended was suspended before, since 20\d\d-.*Z: 0 buffers changed\n$/,
    )
    expect(await say('--resume')).to.equal('suspended is resumed: 2 buffers changed\n')
    expect(await states()).to.deep.equal([false, false])
    const audited = await db<{ route: string }[]>`
      SELECT route FROM audit_records WHERE customer_id = 'suspended' ORDER BY created_at`
    expect(audited.map(({ route }) => route)).to.deep.equal([
      'npm run account',
      'npm run account -- --suspend',
      'npm run account -- --resume',
    ])
    await db.end()
  })

  it('revokes all keys of a customer, also of a suspended one, and says how many', async () => {
    const say = async (...options: string[]) => (await account('robbed', ...options)).stdout
    for (let n = 0; n < 2; n++) await say()
    await account('neighbour')
    await say('--suspend')
    expect(await say('--revoke-keys')).to.equal('robbed: 2 keys revoked\n')
    expect(await say('--revoke-keys')).to.equal('robbed: 0 keys revoked\n')
    const db = connect(databaseUrl, { max: 1 })
    const keysOf = (customerId: string) => db<{ keyId: string; revoked: boolean }[]>`
      SELECT key_id AS "keyId", revoked_at IS NOT NULL AS revoked FROM api_keys WHERE customer_id = ${customerId}`
    const keys = await keysOf('robbed')
    expect(keys.map(({ revoked }) => revoked)).to.deep.equal([true, true])
    expect((await keysOf('neighbour')).map(({ revoked }) => revoked)).to.deep.equal([false])
    const audited = await db<{ target: { keyId: string } }[]>`
      SELECT target FROM audit_records WHERE route = 'npm run account -- --revoke-keys'`
    await db.end()
    expect(audited.map(({ target }) => target.keyId)).to.have.members(keys.map(({ keyId }) => keyId))
    expect(await say(), 'a new one').to.match(/^svk_/)
  })

  it('gives out a customer that another one created only when it is said what that one may read', async () => {
    await account('mallory')
    const db = connect(databaseUrl, { max: 1 })
    const create = (id: string) =>
      db`INSERT INTO customers (customer_id, name, created_by) VALUES (${id}, 'Mine', 'mallory')`
    const creatorOf = async (id: string) =>
      (await db`SELECT created_by FROM customers WHERE customer_id = ${id}`)[0]?.created_by
    for (const id of ['globex', 'branch']) {
      await create(id)
      const { code, stderr } = await refusal(id)
      expect(code).to.equal(1)
      expect(stderr).to.match(/^mallory created the customer .* --take-over, .* --keep-creator\n$/)
    }
    expect((await account('globex', '--take-over')).stdout).to.match(/^svk_[0-9a-f]{48}\n$/)
    expect((await account('branch', '--keep-creator')).stdout).to.match(/^svk_[0-9a-f]{48}\n$/)
    expect([await creatorOf('globex'), await creatorOf('branch')]).to.deep.equal([null, 'mallory'])
    expect((await account('branch')).stdout, 'it was given out before').to.match(/^svk_/)
    const recorded = await db<{ route: string }[]>`
      SELECT route FROM audit_records WHERE customer_id IN ('globex', 'branch') ORDER BY created_at, audit_id`
    expect(recorded.map(({ route }) => route)).to.deep.equal([
      'npm run account -- --take-over',
      'npm run account -- --keep-creator',
      'npm run account',
    ])
    await db.end()
  })

  it('changes nobody whom it does not know, and takes one option', async () => {
    for (const option of ['--suspend', '--resume', '--revoke-keys']) {
      expect(await refusal('nobody', option)).to.deep.equal({ code: 1, stderr: 'Customer not found\n' })
    }
    for (const options of [['--suspend', '--resume'], ['--take-over', '--keep-creator'], ['--delete']]) {
      expect(await refusal('acme', ...options)).to.deep.equal({ code: 2, stderr: USAGE })
    }
  })

  it('leaves a record in the audit of the customer, with the id of the key', async () => {
    await account('recorded')
    const db = connect(databaseUrl, { max: 1 })
    const acme: Principal = { customerId: 'recorded', role: 'owner', via: 'key' }
    const { records } = await createAuditReading({ store: createAuditStore(db) }).list(acme, { limit: 9 })
    const [key] = await db<{ keyId: string }[]>`
      SELECT key_id AS "keyId" FROM api_keys WHERE customer_id = 'recorded'`
    await db.end()
    expect(records).to.have.length(1)
    expect(records[0]).to.deep.include({
      actor: { type: 'command' },
      route: 'npm run account',
      target: { keyId: key!.keyId },
      status: null,
    })
  })

  it('makes the key although the audit cannot be written, and says so', async () => {
    const db = connect(databaseUrl, { max: 1 })
    await db`ALTER TABLE audit_records RENAME TO away`
    const { stdout, stderr } = await account('unrecorded').finally(async () => {
      await db`ALTER TABLE away RENAME TO audit_records`
      await db.end()
    })
    expect(stdout).to.match(/^svk_[0-9a-f]{48}\n$/)
    expect(stderr).to.match(/^this is not in the audit: /)
  })

  it('refuses bad ids and a missing argument in one line', async () => {
    expect(await refusal('no/slash')).to.deep.include({ code: 1 })
    expect((await refusal('no/slash')).stderr).to.match(/^customerId.*\n$/)
    expect(await refusal()).to.deep.equal({ code: 2, stderr: USAGE })
  })
})
