import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { parse } from 'yaml'
import { GROUP, PLURAL } from '../../../operator/resource.ts'
import { type Kube, kubectl, kubectlOk, kubeOrSkip, start, stopKube } from '../../kube/kube.ts'
import type { Service } from '../../support/service.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { tempFolder } from '../../support/temp-folders.ts'
import { crdFile, defineBuffers } from '../crd/site.ts'
import { inTime, OperatorHarness } from './harness.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const DEFINITION = `${PLURAL}.${GROUP}`

describe('an operator at an API server that is not prepared for it', function () {
  this.timeout(240_000)
  // A cluster of its own: a definition belongs to the whole of it.
  let cluster: Kube | undefined
  let harness: OperatorHarness

  before(async function () {
    cluster = await start({ parts: '' })
    if (cluster === undefined) return this.skip()
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
  })

  after(async () => {
    await harness?.close()
    if (cluster) await stopKube(cluster)
  })

  it('waits for the definition of Buffers, also where there is another version, and follows it away and back', async () => {
    await undefine()
    const operator = await harness.spawn()
    await told(operator, '/buffers: 404')
    expect(await isReady(operator)).to.equal(false)

    const other = parse(readFileSync(crdFile, 'utf8'))
    other.spec.versions[0].name = 'v9'
    await kubectlOk(cluster!, ['create', '-f', '-'], JSON.stringify(other))
    await kubectlOk(cluster!, ['wait', '--for=condition=Established', '--timeout=60s', `crd/${DEFINITION}`])
    await told(operator, '/buffers: 404')
    expect(await isReady(operator)).to.equal(false)

    await undefine()
    await defineBuffers(cluster!)
    await harness.untilLogged(operator, 'leading')
    await inTime(() => isReady(operator))
    await lives(harness.name('defined'))

    // Its Buffers go first: the definition waits for the operator's finalizers.
    await undefine()
    await told(operator, '/buffers: 404')
    await defineBuffers(cluster!)
    await lives(harness.name('anew'))
    operator.child.kill('SIGTERM')
    expect(await operator.exited()).to.equal(0)
  })

  it('waits for its rights, names those that it lacks, and goes on when it has them', async () => {
    const operator = await harness.spawn({ KUBECONFIG: join(cluster!.dir, 'operator.kubeconfig') })
    await told(operator, 'User "operator" cannot list resource "buffers"')
    await told(operator, 'User "operator" cannot list resource "secrets"')
    expect(await isReady(operator)).to.equal(false)
    expect(operator.child.exitCode).to.equal(null)
    const rights = [
      'create',
      'clusterrolebinding',
      'operator',
      '--clusterrole=cluster-admin',
      '--user=operator',
    ]
    await kubectlOk(cluster!, rights)
    await harness.untilLogged(operator, 'leading')
    await lives(harness.name('allowed'))
  })

  /**
   * The definition is gone, and Buffers with it. An API server whose storage of a new definition is not ready yet ("storage
   * is (re)initializing") may give up on its removal until its next resync, minutes later. A change of the definition
   * makes it try again (`updateCustomResourceDefinition` in apiextensions-apiserver/pkg/controller/finalizer).
   */
  async function undefine(): Promise<void> {
    await kubectlOk(cluster!, ['delete', 'crd', DEFINITION, '--wait=false'])
    let tries = 0
    await inTime(async () => {
      const gone = await kubectl(cluster!, ['wait', '--for=delete', `crd/${DEFINITION}`, '--timeout=5s'])
      if (gone.code === 0) return true
      tries += 1
      await kubectl(cluster!, ['annotate', '--overwrite', 'crd', DEFINITION, `penstock-test/tries=${tries}`])
      return false
    })
  }

  async function lives(name: string): Promise<void> {
    await harness.create(name)
    await harness.untilReady(name)
  }
})

describe('operators of two versions', function () {
  this.timeout(240_000)
  let harness: OperatorHarness
  let older: string

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    older = checkoutOf('0.0.1')
  })

  after(() => harness?.close())

  it('do not undo each other: one leads, the other finds what it left in order, either way', async () => {
    const env = { PENSTOCK_VERIFY_SECONDS: '86400' }
    const name = harness.name('shared')
    await harness.create(name)
    let leader = await harness.spawn(env, older)
    await harness.untilLogged(leader, 'leading')
    await harness.untilReady(name)
    await inTime(async () => (await harness.read(name)).status?.deadLetters === 0)
    const settled = (await harness.read(name)).status

    for (const [turn, program] of [undefined, older].entries()) {
      const follower = await harness.spawn(env, program)
      await harness.untilLogged(follower, 'ready')
      const asked = harness.proxy.seen(name).length
      leader.child.kill('SIGTERM')
      expect(await leader.exited()).to.equal(0)
      await harness.untilLogged(follower, 'leading')
      const behind = harness.name('behind')
      await harness.create(behind)
      await harness.untilReady(behind)
      // Nothing is asked of the service, and nothing written, for what the other version settled.
      expect(harness.proxy.seen(name)).to.have.length(asked)
      if (turn === 0) expect((await harness.read(name)).status).to.deep.equal(settled)
      await harness.patch(name, { spec: { batch: { maxItems: 10 + turn } } })
      await harness.untilReady(name)
      leader = follower
    }
    const versions = (method: string) =>
      harness.proxy.seen(name, method).map(({ headers }) => headers['user-agent']?.split('/')[1])
    expect(versions('POST')).to.deep.equal(['0.0.1'])
    expect(versions('PATCH')).to.deep.equal([ownVersion(), '0.0.1'])
  })
})

/** Until it says once more that something failed, with these words. */
async function told({ events }: Service, words: string): Promise<void> {
  const said = () => events.filter(({ err }) => (err as Error | undefined)?.message.includes(words)).length
  const before = said()
  await inTime(() => said() > before)
}

async function isReady({ events }: Service): Promise<boolean> {
  const opsPort = events.find(({ msg }) => msg === 'watching')?.opsPort
  return (await fetch(`http://127.0.0.1:${opsPort}/ready`)).status === 200
}

function ownVersion(): string {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version
}

/** The operator's program in a checkout of another version. */
function checkoutOf(version: string): string {
  const folder = tempFolder('checkout')
  for (const each of ['cmd', 'internal', 'operator']) {
    cpSync(join(ROOT, each), join(folder, each), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const packageFile = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...packageFile, version }))
  return join(folder, 'cmd', 'operator', 'main.ts')
}
