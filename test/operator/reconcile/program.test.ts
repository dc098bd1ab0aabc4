import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import { startService } from '../../support/service.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { tempFolder } from '../../support/temp-folders.ts'
import { OperatorHarness } from './harness.ts'

/** A kubeconfig of a cluster that nobody runs. */
const SOMEWHERE = {
  clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'u', user: {} }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'c',
}

describe('the program of the operator', function () {
  this.timeout(180_000)
  let harness: OperatorHarness

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
  })

  after(() => harness?.close())

  it('stands by with all it needs, and leads once the leader is stopped', async () => {
    const leader = await harness.operate()
    const follower = await harness.spawn()
    const { opsPort } = await harness.untilLogged(follower, 'ready')
    const get = (path: string) => fetch(`http://127.0.0.1:${opsPort}${path}`)
    expect((await get('/live')).status).to.equal(200)
    expect((await get('/ready')).status).to.equal(200)
    expect(await (await get('/metrics')).text()).to.match(/^penstock_operator_leading\S* 0$/m)
    const name = harness.name('first')
    await harness.create(name)
    await harness.untilReady(name)
    expect(follower.events.some(({ msg }) => msg === 'leading')).to.equal(false)

    leader.child.kill('SIGTERM')
    expect(await leader.exited()).to.equal(0)
    await harness.untilLogged(follower, 'leading')
    const other = harness.name('second')
    await harness.create(other)
    await harness.untilReady(other)
    const metrics = await (await get('/metrics')).text()
    expect(metrics).to.match(/^penstock_operator_leading\S* 1$/m)
    expect(metrics).to.match(/^penstock_operator_reconciles_total\{.*result="requeue".*\} [1-9]/m)
  })
})

describe('the start of the operator', function () {
  this.timeout(120_000)

  const refusals: readonly [title: string, env: Record<string, string>, line: RegExp][] = [
    ['no admin API', { KUBECONFIG: '/none' }, /^PENSTOCK_ADMIN_URL: is required for operator\n$/],
    ['no kubeconfig', { PENSTOCK_ADMIN_URL: 'http://admin', KUBECONFIG: '/none' }, /^KUBECONFIG: .*\n$/],
    [
      'a kubeconfig that has no current context',
      { PENSTOCK_ADMIN_URL: 'http://admin', KUBECONFIG: fileOf('{}') },
      /^KUBECONFIG: has no current context\n$/,
    ],
    [
      'a kubeconfig that lacks its current context',
      { PENSTOCK_ADMIN_URL: 'http://admin', KUBECONFIG: kubeconfig({ contexts: [] }) },
      /^KUBECONFIG: has no context c\n$/,
    ],
    [
      'a kubeconfig that lacks the cluster of its context',
      { PENSTOCK_ADMIN_URL: 'http://admin', KUBECONFIG: kubeconfig({ clusters: [] }) },
      /^KUBECONFIG: the context c names a cluster that is not there: c\n$/,
    ],
    [
      'a kubeconfig that lacks the user of its context',
      { PENSTOCK_ADMIN_URL: 'http://admin', KUBECONFIG: kubeconfig({ users: [] }) },
      /^KUBECONFIG: the context c names a user that is not there: u\n$/,
    ],
    ['an unreadable file of authorities', trusting('/none'), /^PENSTOCK_ADMIN_CA_FILE: ENOENT.*\n$/],
    [
      'a file of authorities that holds none',
      trusting(fileOf('no certificate\n')),
      /^PENSTOCK_ADMIN_CA_FILE: holds no certificate in PEM\n$/,
    ],
    [
      'a broken certificate of an authority',
      trusting(fileOf('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')),
      /^PENSTOCK_ADMIN_CA_FILE: .*asn1.*\n$/,
    ],
  ]
  for (const [title, env, line] of refusals) {
    it(`is refused in one line with ${title}`, async () => {
      const dataDir = tempFolder('operator')
      const service = await startService({ dataDir, program: 'cmd/operator/main.ts', env })
      expect(await service.exited()).to.equal(1)
      expect(service.output()).to.match(line)
    })
  }
})

function trusting(adminCaFile: string): Record<string, string> {
  return {
    PENSTOCK_ADMIN_URL: 'https://admin',
    PENSTOCK_ADMIN_CA_FILE: adminCaFile,
    KUBECONFIG: kubeconfig(),
  }
}

function kubeconfig(other: object = {}): string {
  return fileOf(JSON.stringify({ ...SOMEWHERE, ...other }))
}

function fileOf(text: string): string {
  const path = join(tempFolder('operator'), 'file')
  writeFileSync(path, text)
  return path
}
