/** The packages under every Node that they promise: packed, installed into an empty project, and used. */
import { copyFileSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { harness } from '../e2e/harness.ts'
import { PACKAGES, ROOT } from './built.ts'
import { nodeOrSkip, type Packed, Project, packAll } from './installed.ts'

const NODES = [20, 22, 26]
/** Run by npm when somebody installs a package, or a repository. */
const INSTALL_SCRIPTS = [
  'preinstall',
  'install',
  'postinstall',
  'prepare',
  'preprepare',
  'postprepare',
  'dependencies',
]

interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly scripts: Record<string, string>
  readonly dependencies?: Record<string, string>
}

describe('the packages', function () {
  this.timeout(300_000)
  const on = harness()
  const manifests = PACKAGES.map((name): Manifest => {
    return JSON.parse(readFileSync(join(ROOT, 'packages', name, 'package.json'), 'utf8'))
  })
  let folder: string
  let packed: Packed[]
  before(async () => {
    ;({ folder, packed } = await packAll())
  })

  it('can be published by nobody, and run nothing when they are installed', () => {
    for (const { name, private: isPrivate, scripts } of manifests) {
      expect(isPrivate, name).to.equal(true)
      expect(name).to.match(/^@penstock-local\//)
      expect(
        Object.keys(scripts).filter((script) => INSTALL_SCRIPTS.includes(script)),
        name,
      ).to.deep.equal([])
    }
  })

  it('depend on exact versions, of each other on those that stand here: any other would come from strangers', () => {
    const own = new Map(manifests.map(({ name, version }) => [name, version]))
    for (const { name, dependencies = {} } of manifests)
      for (const [dependency, version] of Object.entries(dependencies)) {
        expect(version, `${name}: ${dependency}`).to.match(/^\d+\.\d+\.\d+$/)
        if (dependency.startsWith('@penstock-local/')) expect(version).to.equal(own.get(dependency))
      }
    expect(manifests[0]!.dependencies).to.equal(undefined)
  })

  it('hold what was built, their README, and nothing else', () => {
    expect(packed.map(({ name }) => name)).to.deep.equal(manifests.map(({ name }) => name).sort())
    for (const { name, files } of packed) {
      const paths = files.map(({ path }) => path)
      expect(paths, name).to.include.members(
        ['package.json', 'README.md', 'dist/index.js'].slice(0, name.endsWith('cli') ? 2 : 3),
      )
      const others = paths.filter(
        (path) => !/^(package\.json|README\.md|bin\/penstock\.js|dist\/[\w/-]+(\.d\.ts|\.js))$/.test(path),
      )
      expect(others, name).to.deep.equal([])
    }
  })

  for (const major of NODES) {
    describe(`under Node ${major}`, () => {
      let project: Project
      let env: Record<string, string>
      before(async function () {
        const bin = await nodeOrSkip(this, major)
        const installed = await Project.install(
          this,
          bin,
          packed.map(({ filename }) => join(folder, filename)),
        )
        expect(installed.output).not.to.match(/warn|error/i)
        project = installed.project
        env = { P: on.installation.service.url, KEY: on.api.key!, NAME: `packages-${major}-${Date.now()}` }
      })

      it('send webhooks, and receive their batch', async () => {
        copyFileSync(join(import.meta.dirname, 'user.mjs'), join(project.folder, 'user.mjs'))
        const { code, stdout, stderr } = await project.run('node', ['user.mjs'], env)
        expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
        const { version, ...arrived } = JSON.parse(stdout)
        expect(version).to.match(new RegExp(`^v${major}\\.`))
        expect(arrived).to.deep.equal({ group: 'ada', orders: [1, 2] })
      })

      it('have the command line', async () => {
        const program = join(project.folder, 'node_modules', '.bin', 'penstock')
        const own = { PENSTOCK_URL: env.P!, PENSTOCK_API_KEY: env.KEY! }
        const { code, stdout, stderr } = await project.run(program, ['whoami', '--json'], own)
        expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
        expect(JSON.parse(stdout).customerId).to.equal(on.api.customerId)
        const version = await project.run(program, ['--version'], {})
        expect(version.stdout).to.equal(`${manifests[2]!.version}\n`)
      })

      // The compiler is the same under each.
      if (major !== 26) return
      it('have types', async () => {
        writeFileSync(join(project.folder, 'user.ts'), TYPED)
        symlinkSync(join(ROOT, 'node_modules', '@types'), join(project.folder, 'node_modules', '@types'))
        const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
        const strict = [
          '--noEmit',
          '--strict',
          '--module',
          'nodenext',
          '--target',
          'es2023',
          '--types',
          'node',
        ]
        const { code, stdout } = await project.run(process.execPath, [compiler, ...strict, 'user.ts'], {})
        expect({ code, stdout }).to.deep.equal({ code: 0, stdout: '' })
      })
    })
  }
})

const TYPED = `
import { createPenstock, type Schemas } from '@penstock-local/client'
import { type Batch, createHandler } from '@penstock-local/receiver'

interface Order { order: number }
export const orders = ({ items }: Batch<Order>): number[] => items.map(({ payload }) => payload.order)
export const { node, fetch } = createHandler<Order>({
  secrets: ['s3cret'],
  onBatch: async (batch, refuse) => {
    if (orders(batch).length > 1) refuse(batch.items[0]!.messageId)
  },
})
export const first = async (): Promise<Schemas['Buffer'] | undefined> => {
  for await (const buffer of createPenstock({ url: 'http://127.0.0.1' }).buffers()) return buffer
  return undefined
}
// @ts-expect-error: a field that is none.
export const nameOf = (buffer: Schemas['Buffer']) => buffer.nothing
`
