/** Buffers that exist become resources, and stay as they are; and they stay when the resources go. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Buffer as StoredBuffer } from '../../../internal/domain/model.ts'
import { kubectlOk, kubeOrSkip } from '../../kube/kube.ts'
import type { Api } from '../../support/api.ts'
import { crdExport } from '../../support/crd-export.ts'
import { freshDatabase } from '../../support/servers.ts'
import { createInstallation, type Installation } from '../../support/service.ts'
import { condition, inTime, OperatorHarness } from './harness.ts'

/** More than any page of a list has. */
const COUNT = 103
const DEAD_END = 'http://127.0.0.1:9/hook'

interface Recorded {
  readonly route: string
  readonly target: { readonly bufferId?: string }
}

interface Audit {
  readonly records: readonly Recorded[]
}

describe('exported buffers', function () {
  this.timeout(240_000)
  let installation: Installation
  let harness: OperatorHarness
  let api: Api
  let databaseUrl: string
  let untouched: { buffers: StoredBuffer[]; audited: Audit }
  let text: string

  before(async function () {
    const cluster = await kubeOrSkip(this)
    databaseUrl = await freshDatabase()
    installation = await createInstallation({ shared: true, env: { PENSTOCK_DATABASE_URL: databaseUrl } })
    await installation.start()
    api = installation.api()
    harness = await OperatorHarness.open(cluster, installation)
    await harness.operate()
    await fill()
    untouched = await stateAfter(({ route }) => route.includes('/credits/'))
  })

  after(async () => {
    await harness?.close()
    await installation?.stop()
  })

  const ofDatabase = () => ({ PENSTOCK_DATABASE_URL: databaseUrl, PENSTOCK_DATA_DIR: installation.dataDir })
  const ofService = (key = api.key!) => ({ PENSTOCK_URL: installation.service.url, PENSTOCK_API_KEY: key })
  const options = () => ['--namespace', harness.namespace, '--credentials-secret', 'penstock']

  /** Two projects; ids that are no names; every kind of secret; disabled and paused ones. */
  async function fill(): Promise<void> {
    const projects = [harness.projectId, await api.createProject()]
    for (let n = 0; n < COUNT - 5; n++)
      await api.createBuffer(projects[n % 2]!, `Plain_${n}`, { delivery: { url: DEAD_END } })
    await api.createBuffer(harness.projectId, 'secretive', {
      delivery: {
        url: DEAD_END,
        headers: { Authorization: 'Bearer hidden-1', 'X-Tenant': 'hidden-2' },
        signing: { secret: 'hidden-3' },
      },
      sourceVerification: {
        enabled: true,
        scheme: 'stripe',
        signingSecret: 'hidden-4',
        previousSecret: 'hidden-5',
      },
    })
    await api.createBuffer(projects[1]!, 'bare', { delivery: { url: DEAD_END, headers: {} } })
    await api.createBuffer(projects[1]!, 'empty', { delivery: { url: DEAD_END, headers: { 'x-empty': '' } } })
    await api.createBuffer(harness.projectId, 'disabled', { enabled: false, delivery: { url: DEAD_END } })
    await api.createBuffer(harness.projectId, 'paused', {
      batch: { maxItems: 1 },
      throughput: { maxAttempts: 1 },
      dlqPauseThreshold: 1,
      delivery: { url: DEAD_END },
    })
    await api.addCredits(10)
    await api.ingest(harness.projectId, 'paused', { group: 'a' })
    await inTime(async () => !(await api.readBuffer('paused')).enabled)
    const values = {
      'signing-secret': 'hidden-3',
      'source-secret': 'hidden-4',
      'previous-source-secret': 'hidden-5',
    }
    const headers = { 'header-authorization': 'Bearer hidden-1', 'header-x-tenant': 'hidden-2' }
    await harness.createSecret('secretive-secrets', { ...values, ...headers })
  }

  /** All that a write to the service would change. */
  async function state() {
    const query = `customerId=${api.customerId}`
    const buffers = await api.expect<StoredBuffer[]>(200, 'GET', `/v1/admin/buffers?${query}`)
    return { buffers, audited: await api.expect<Audit>(200, 'GET', '/v1/admin/audit') }
  }

  /** Once the last change is recorded, which comes a moment after its answer. */
  const stateAfter = (isLast: (record: Recorded) => boolean) =>
    inTime(async () => {
      const now = await state()
      return isLast(now.audited.records[0]!) && now
    })

  async function expectUntouched(): Promise<void> {
    const { buffers, audited } = await state()
    expect(audited).to.deep.equal(untouched.audited)
    for (const [index, buffer] of buffers.entries()) expect(buffer).to.deep.equal(untouched.buffers[index])
    expect(buffers).to.have.length(untouched.buffers.length)
  }

  const apply = (manifests: string) =>
    kubectlOk(harness.cluster, ['apply', '--validate=strict', '-f', '-'], manifests)

  it('are the same text, read from the database and from the service', async () => {
    const read = await crdExport(['--customer', api.customerId, ...options()], ofDatabase())
    expect({ code: read.code, stderr: read.stderr }).to.deep.equal({ code: 0, stderr: `${COUNT} Buffers\n` })
    text = read.stdout
    expect(text).to.not.match(/hidden-/)
    expect(await crdExport(options(), ofService())).to.deep.equal(read)
  })

  it('become Buffers that are ready, and nothing is written to the service', async () => {
    await apply(text)
    await inTime(async () => {
      const resources = await harness.list()
      const settled = resources.filter(
        (each) => condition(each, 'Ready')?.status === 'True' && condition(each, 'Reconciling') === undefined,
      )
      if (settled.length !== COUNT) throw new Error(`${settled.length} of ${resources.length} are ready`)
      return true
    })
    expect(harness.proxy.seen().filter(({ method }) => method !== 'GET')).to.deep.equal([])
    await expectUntouched()
    expect((await harness.untilEvent('secretive', 'Adopted')).type).to.equal('Normal')
    expect(await harness.untilReady('paused')).to.have.nested.property('status.enabled', false)
  })

  it('are managed from then on', async () => {
    await harness.patch('disabled', { spec: { enabled: true } })
    await inTime(async () => (await api.readBuffer('disabled')).enabled)
    await harness.untilReady('disabled')
    untouched = await stateAfter(({ target }) => target.bufferId === 'disabled')
  })

  it('stay as they are when their resources are deleted', async () => {
    await kubectlOk(harness.cluster, [
      '-n',
      harness.namespace,
      'delete',
      'buffers',
      '--all',
      '--timeout=120s',
    ])
    expect(await harness.list()).to.deep.equal([])
    expect(harness.proxy.seen().filter(({ method }) => method === 'DELETE')).to.deep.equal([])
    await expectUntouched()
  })

  it('are those of a project, when one is named, and the key may be that of a viewer', async () => {
    const args = ['--customer', api.customerId, '--project', harness.projectId]
    const some = await crdExport(args, ofDatabase())
    expect(some.stderr).to.equal('52 Buffers\n')
    const viewer = await api.createKey({ role: 'viewer' })
    expect(await crdExport(args, ofService(viewer.secret))).to.deep.equal(some)
    expect((await crdExport(['--project', 'nothing'], ofService())).stdout).to.equal('')
  })
})
