/** Which modes of TLS the driver verifies by: the real driver at a real server whose certificate nobody trusts. */
import { chmodSync, chownSync, copyFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { connect } from '../../internal/postgres/connection.ts'
import { unverifiedMode } from '../../internal/postgres/tls.ts'
import { eventually } from '../support/eventually.ts'
import { ownPostgres } from '../support/servers.ts'

const CERTIFICATES = join(import.meta.dirname, '..', 'support', 'certificates')

describe('postgres: TLS', function () {
  this.timeout(120_000)
  let url: URL

  before(async () => {
    const server = await ownPostgres()
    url = new URL(server.url)
    const db = connect(server.url, { max: 1 })
    const [{ folder }] = (await db`SELECT current_setting('data_directory') AS folder`) as [
      { folder: string },
    ]
    const { uid, gid } = statSync(folder)
    for (const file of ['sink.cert.pem', 'sink.key.pem']) {
      copyFileSync(join(CERTIFICATES, file), join(folder, file))
      // As the server demands it of the key.
      chownSync(join(folder, file), uid, gid)
      chmodSync(join(folder, file), 0o600)
    }
    await db`ALTER SYSTEM SET ssl_cert_file = 'sink.cert.pem'`
    await db`ALTER SYSTEM SET ssl_key_file = 'sink.key.pem'`
    await db`ALTER SYSTEM SET ssl = on`
    await db`SELECT pg_reload_conf()`
    await db.end()
    await eventually(async () => expect(await askBy('require')).to.equal(true))
  })

  const at = (mode: string) => `${url}${url.search ? '&' : '?'}sslmode=${mode}`

  /** Whether the connection is encrypted; rejects as the driver. */
  async function askBy(mode: string): Promise<boolean> {
    const db = connect(at(mode), { max: 1 })
    try {
      const [row] = await db<{ ssl: boolean }[]>`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`
      return row!.ssl
    } finally {
      await db.end({ timeout: 1 })
    }
  }

  for (const mode of ['require', 'prefer', 'allow']) {
    it(`takes any certificate with ${mode}, and a start says so`, async () => {
      expect(await askBy(mode)).to.equal(true)
      expect(unverifiedMode(at(mode))).to.equal(mode)
    })
  }

  for (const mode of ['verify-full', 'verify-ca']) {
    it(`refuses a certificate that nobody trusts with ${mode}`, async () => {
      const error = await askBy(mode).catch((reason) => reason)
      expect(String(error.code)).to.match(/CERT|SELF_SIGNED|UNABLE_TO/)
      expect(unverifiedMode(at(mode))).to.equal(undefined)
    })
  }

  it('encrypts nothing that the URL does not ask for', async () => {
    expect(await askBy('disable')).to.equal(false)
    for (const plain of ['disable', '']) expect(unverifiedMode(at(plain))).to.equal(undefined)
    expect(unverifiedMode('postgres://db/penstock')).to.equal(undefined)
    expect(unverifiedMode('postgres://db/penstock?ssl=require')).to.equal('require')
  })
})
