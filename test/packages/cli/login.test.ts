/** `penstock login`: where the key is kept, and where it goes. */
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { walk } from './walk.ts'

describe('penstock login', function () {
  this.timeout(180_000)
  const walker = walk()
  const { on } = walker
  const profile = () => join(walker.home, '.config', 'penstock', 'profile.json')
  const login = (key: string, ...more: string[]) =>
    walker.cli.run(['login', '--url', on.installation.service.url, ...more], key)

  it('refuses a key that the service does not know, and writes nothing', async () => {
    const { code, stderr } = await login(`svk_${'0'.repeat(48)}\n`)
    expect(code).to.equal(3)
    expect(stderr).to.equal('penstock: GET /v1/admin/whoami: 401 Invalid or revoked API key\n')
    expect(existsSync(profile())).to.equal(false)
  })

  it('keeps the key in a file that nobody else may read, also where one was that others may', async () => {
    const open = walker.file('open.json', '{}')
    chmodSync(open, 0o666)
    for (const more of [[], ['--profile', open]]) {
      const { code, stdout, stderr } = await login(`${on.api.key}\n`, ...more)
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
      expect(stdout).to.include(`owner of ${on.api.customerId}, all projects`).and.not.include(on.api.key)
    }
    for (const path of [profile(), open]) {
      expect(statSync(path).mode & 0o777).to.equal(0o600)
      expect(JSON.parse(readFileSync(path, 'utf8')).apiKey).to.equal(on.api.key)
    }
  })

  it('lets other commands use the profile', async () => {
    const me = { customerId: on.api.customerId, role: 'owner' }
    expect(await walker.cli.json(['whoami'])).to.include(me)
    const edited = walker.file('edited.json', `\uFEFF${readFileSync(profile(), 'utf8')}`)
    chmodSync(edited, 0o600)
    expect(await walker.cli.json(['whoami', '--profile', edited])).to.include(me)
  })

  it('is not believed when others may read its file', async () => {
    const open = walker.file(
      'loose.json',
      JSON.stringify({ url: on.installation.service.url, apiKey: on.api.key }),
    )
    chmodSync(open, 0o640)
    const { code, stderr } = await walker.cli.run(['whoami', '--profile', open])
    expect(code).to.equal(3)
    expect(stderr).to.match(/^penstock: others may read the profile .*: chmod 600 it, and replace the key\n$/)
  })

  it('gives its key to no other service', async () => {
    const { code, stderr } = await walker.cli.with({ PENSTOCK_URL: on.sink.url('/other') }).run(['whoami'])
    expect(code).to.equal(3)
    expect(stderr).to.include('which the key of the profile is for')
    expect(on.sink.requests('/other/v1/admin/whoami')).to.deep.equal([])
  })
})
