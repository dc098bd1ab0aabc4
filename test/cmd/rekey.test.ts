import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { leftLines } from '../../cmd/rekey/report.ts'
import { freshDatabase } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'cmd', 'rekey', 'main.ts')

describe('npm run rekey', () => {
  let databaseUrl: string
  before(async () => {
    databaseUrl = await freshDatabase()
  })

  const rekey = async (env: Record<string, string>, ...args: string[]) => {
    const given = { PATH: process.env.PATH, PENSTOCK_DATA_DIR: tempFolder('data'), ...env }
    return promisify(execFile)(process.execPath, [MAIN, ...args], { env: given }).then(
      ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
        code,
        stdout,
        stderr,
      }),
    )
  }

  it('has nothing to do in a database without secrets', async () => {
    const keys = `a:${randomBytes(32).toString('base64')}`
    expect(await rekey({ PENSTOCK_DATABASE_URL: databaseUrl, PENSTOCK_SECRET_KEY: keys })).to.deep.equal({
      code: 0,
      stdout: '0 rows moved to the key a: all secrets are under the key a\n',
      stderr: '',
    })
  })

  it('takes the keys of a local instance from its data folder', async () => {
    const dataDir = tempFolder('data')
    const [fresh, old] = [0, 0].map(() => randomBytes(32).toString('base64'))
    await writeFile(join(dataDir, 'secret-key'), `fresh:${fresh},default:${old}\n`)
    const env = { PENSTOCK_DATABASE_URL: databaseUrl, PENSTOCK_DATA_DIR: dataDir }
    expect(await rekey(env, '--check')).to.include({
      code: 0,
      stdout: 'all secrets are under the key fresh\n',
    })
  })

  it('refuses what it does not know, and makes no key and no database', async () => {
    expect(await rekey({}, '--all')).to.include({
      code: 2,
      stderr: 'usage: npm run rekey [-- --check]\n',
    })
    expect((await rekey({ PENSTOCK_DATABASE_URL: databaseUrl })).stderr).to.match(
      /^no key in .*: set PENSTOCK_SECRET_KEY\n$/,
    )
    expect((await rekey({})).stderr).to.match(/^no database in /)
  })

  it('says of what is left by which keys it is sealed', () => {
    const table = 'buffers' as const
    const left = [
      { table, keyIds: ['old'], rows: 1 },
      { table, keyIds: ['lost', 'old'], rows: 2 },
      { table, keyIds: ['?', 'old'], rows: 3 },
    ]
    expect(leftLines(left.slice(0, 1), ['new', 'old'], false)).to.equal(
      '1 row of buffers under the key old\n',
    )
    expect(leftLines(left, ['new', 'old'], true)).to.equal(
      '1 row of buffers under the key old cannot be opened: a text is damaged\n' +
        '2 rows of buffers under the key lost, which is not configured\n' +
        '3 rows of buffers with a secret that is not encrypted\n',
    )
  })
})
