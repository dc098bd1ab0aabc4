import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { FINALIZER } from '../../../operator/resource.ts'
import { kubeOrSkip, namespace } from '../../kube/kube.ts'
import type { Service } from '../../support/service.ts'
import { freshPayer, sharedInstallation } from '../../support/shared-installation.ts'
import { concerns } from './admin-proxy.ts'
import { deletionWebhook } from './deletion-webhook.ts'
import { condition, inTime, OperatorHarness } from './harness.ts'

describe('a deleted Buffer resource', function () {
  this.timeout(240_000)
  let harness: OperatorHarness
  /** A namespace that a test deletes. */
  let doomed: string

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    doomed = await namespace(cluster, 'doomed')
    await harness.createSecret('penstock', { apiKey: harness.api.key! }, doomed)
    await harness.operate({ PENSTOCK_WATCH_NAMESPACES: [...harness.namespaces, doomed].join(',') })
  })

  afterEach(() => harness.proxy.interfere())

  after(() => harness?.close())

  async function made(name: string, spec: object = {}, within = harness.namespace): Promise<void> {
    await harness.create(name, spec, within)
    await harness.untilReady(name, within)
  }

  async function statusAtService(name: string): Promise<number> {
    return (await harness.api.request('GET', `/v1/admin/buffers/${name}`)).status
  }

  it('takes its buffer along by one request', async () => {
    const name = harness.name('gone')
    await made(name)
    await harness.remove(name)
    await harness.untilGone(name)
    expect(await statusAtService(name)).to.equal(404)
    expect(harness.proxy.seen(name, 'DELETE').map(({ status }) => status)).to.deep.equal([204])
  })

  it('whose buffer is gone already goes too', async () => {
    const name = harness.name('missing')
    await made(name)
    await harness.api.deleteBuffer(name)
    await harness.remove(name)
    await harness.untilGone(name)
    const { type, note } = await harness.untilEvent(name, 'NotFound')
    expect({ type, note }).to.deep.equal({ type: 'Normal', note: `the buffer ${name} was gone already` })
  })

  it('waits while the service is down, and goes once it is back', async () => {
    const name = harness.name('held')
    await made(name)
    harness.proxy.interfere((seen) => (concerns(seen, name) ? 'reset' : undefined))
    await harness.remove(name)
    const held = await harness.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
    expect(condition(held, 'Ready')?.status).to.equal('False')
    await inTime(() => harness.proxy.seen(name, 'DELETE').length >= 3)
    expect(await statusAtService(name)).to.equal(200)
    harness.proxy.interfere()
    await harness.untilGone(name)
    expect(await statusAtService(name)).to.equal(404)
  })

  it('leaves its buffer where it shall', async () => {
    const name = harness.name('orphan')
    await made(name, { deletionPolicy: 'Orphan' })
    await harness.remove(name)
    await harness.untilGone(name)
    expect(await statusAtService(name)).to.equal(200)
    expect(harness.proxy.seen(name, 'DELETE')).to.have.length(0)
  })

  it('goes with the last key that worked when its Secret is gone', async () => {
    const name = harness.name('keyless')
    await harness.createSecret(name, { apiKey: harness.api.key! })
    await made(name, { credentialsRef: { name } })
    await harness.removeSecret(name)
    await harness.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    await harness.remove(name)
    await harness.untilGone(name)
    expect(await statusAtService(name)).to.equal(404)
  })

  it('goes with the last key that worked when its Secret has one of another account', async () => {
    const name = harness.name('swapped')
    const other = (await sharedInstallation()).api(await freshPayer(1))
    await harness.createSecret(name, { apiKey: harness.api.key! })
    await made(name, { credentialsRef: { name } })
    await harness.patchSecret(name, { apiKey: other.key! })
    // There the project is none.
    await harness.untilCondition(name, 'Stalled', { reason: 'InvalidSpec' })
    await harness.remove(name)
    await harness.untilGone(name)
    expect(harness.proxy.seen(name, 'DELETE').map(({ status }) => status)).to.deep.equal([404, 204])
    expect(await statusAtService(name)).to.equal(404)
  })

  it('that others hold longer is not ready any more', async () => {
    const name = harness.name('kept')
    await made(name)
    const { metadata } = await harness.read(name)
    await harness.patch(name, { metadata: { finalizers: [...metadata.finalizers!, 'example.com/other'] } })
    await harness.remove(name)
    const { status } = await harness.untilCondition(name, 'Ready', { status: 'False', reason: 'Deleted' })
    expect(status).to.not.have.any.keys('bufferId', 'ingestPath')
    expect(await statusAtService(name)).to.equal(404)
    await harness.patch(name, { metadata: { finalizers: null } })
    await harness.untilGone(name)
  })

  it('goes with its whole namespace', async () => {
    const names = Array.from({ length: 5 }, () => harness.name('doomed'))
    for (const name of names) await made(name, {}, doomed)
    await harness.removeNamespace(doomed)
    for (const name of names) await harness.untilGone(name, doomed)
    for (const name of names) expect(await statusAtService(name)).to.equal(404)
  })

  it('that is made anew at once has a buffer again', async () => {
    const name = harness.name('anew')
    await made(name, { displayName: 'old' })
    await harness.remove(name)
    await inTime(async () => {
      await harness.create(name, { displayName: 'new' })
      return true
    })
    await harness.untilReady(name)
    expect((await harness.api.readBuffer(name)).name).to.equal('new')
    const creations = harness.proxy.seen(name, 'POST').filter(({ status }) => status === 201)
    expect(creations).to.have.length(2)
  })

  it('that is deleted right behind its creation leaves nothing', async () => {
    const names = Array.from({ length: 20 }, () => harness.name('brief'))
    await Promise.all(
      names.map(async (name) => {
        await harness.create(name)
        await harness.remove(name)
      }),
    )
    for (const name of names) {
      await harness.untilGone(name)
      // A resource may be removed in spite of its finalizer (see below): its buffer goes after it then.
      await inTime(async () => (await statusAtService(name)) === 404)
    }
  })
})

describe('a resource that met an operator late', function () {
  this.timeout(240_000)
  let harness: OperatorHarness

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
  })

  after(() => harness?.close())

  it('deleted before its first reconcile, is simply gone', async () => {
    const name = harness.name('unmet')
    await harness.create(name)
    await harness.remove(name)
    await harness.untilGone(name)
    const operator = await harness.operate()
    const behind = harness.name('behind')
    await harness.create(behind)
    await harness.untilReady(behind)
    expect(harness.proxy.seen(name)).to.have.length(0)
    await stop(operator)
  })

  it('while its deletion was under way already, is removed in spite of its finalizer, and takes its buffer along', async () => {
    const prefix = harness.name('removed')
    const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
    const name = `${prefix}-late`
    const webhook = await deletionWebhook(prefix, async (asked) => {
      if (asked === name) await allowed
    })
    const withdraw = await harness.admit(webhook)
    // The API server asks a webhook that it has just heard of a moment later.
    await inTime(async () => {
      await harness.create(`${prefix}-probe`)
      await harness.remove(`${prefix}-probe`)
      return webhook.asked.length > 0
    })
    await harness.create(name)
    const removed = harness.remove(name)
    await inTime(() => webhook.asked.includes(name))
    const operator = await harness.operate()
    await harness.untilReady(name)
    allow()
    await removed
    await harness.untilGone(name)
    await inTime(async () => (await harness.api.request('GET', `/v1/admin/buffers/${name}`)).status === 404)
    expect(harness.proxy.seen(name, 'DELETE').map(({ status }) => status)).to.deep.equal([204])
    await withdraw()
    await webhook.close()
    await stop(operator)
  })

  it('and lost its Secret before it was looked at, takes its buffer along', async () => {
    const name = harness.name('recent')
    await harness.createSecret(name, { apiKey: harness.api.key! })
    const before = await harness.operate()
    await harness.create(name, { credentialsRef: { name } })
    await harness.untilReady(name)
    await stop(before)
    // What is in order is not asked about for a long time.
    const operator = await harness.operate({ PENSTOCK_VERIFY_SECONDS: '86400' })
    const behind = harness.name('behind')
    await harness.create(behind)
    await harness.untilReady(behind)
    await harness.removeSecret(name)
    await harness.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    await harness.remove(name)
    await harness.untilGone(name)
    expect((await harness.api.request('GET', `/v1/admin/buffers/${name}`)).status).to.equal(404)
    await stop(operator)
  })

  it('and whose key nobody knows any more, is let go after a while, and its buffer stays', async () => {
    const name = harness.name('stranded')
    const operator = await harness.operate()
    await harness.createSecret(name, { apiKey: harness.api.key! })
    await harness.create(name, { credentialsRef: { name } })
    await harness.untilReady(name)
    await stop(operator)
    await harness.removeSecret(name)
    await harness.remove(name)
    const successor = await harness.operate()
    const waiting = await harness.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    expect(waiting.metadata.deletionTimestamp).to.be.a('string')
    // A minute after the operator found it so.
    await harness.untilGone(name)
    expect((await harness.untilEvent(name, 'Orphaned')).type).to.equal('Warning')
    await harness.api.readBuffer(name)
    await harness.api.deleteBuffer(name)
    await stop(successor)
  })

  /** Keys that cannot delete the buffer. */
  const keys: readonly (readonly [title: string, reason: string, make: () => Promise<string>])[] = [
    [
      'a revoked key',
      'InvalidCredentials',
      async () => {
        const { keyId, secret } = await madeKey({ role: 'member' })
        await harness.api.expect(204, 'DELETE', `/v1/admin/api-keys/${keyId}`)
        return secret
      },
    ],
    ["a viewer's key", 'Forbidden', async () => (await madeKey({ role: 'viewer' })).secret],
    [
      'a key of another project',
      'InvalidCredentials',
      async () => {
        const projectIds = [await harness.api.createProject()]
        return (await madeKey({ role: 'member', projectIds })).secret
      },
    ],
    [
      "another account's key",
      'InvalidCredentials',
      async () => (await sharedInstallation()).api(await freshPayer(1)).key!,
    ],
    ['what is no key', 'InvalidCredentials', async () => 'none'],
  ]

  for (const [title, reason, make] of keys) {
    it(`and whose Secret has ${title}, stays until the key is good`, async () => {
      const name = harness.name('refused')
      const before = await harness.operate()
      await harness.createSecret(name, { apiKey: harness.api.key! })
      await harness.create(name, { credentialsRef: { name } })
      await harness.untilReady(name)
      await stop(before)
      await harness.patchSecret(name, { apiKey: await make() })
      await harness.remove(name)
      const operator = await harness.operate()
      await harness.untilCondition(name, 'Stalled', { reason })
      expect((await harness.read(name)).metadata.finalizers).to.deep.equal([FINALIZER])
      await harness.api.readBuffer(name)
      await harness.patchSecret(name, { apiKey: harness.api.key! })
      await harness.untilGone(name)
      expect((await harness.api.request('GET', `/v1/admin/buffers/${name}`)).status).to.equal(404)
      await stop(operator)
    })
  }

  it('and was killed behind the deletion of the buffer, goes without a warning', async () => {
    const name = harness.name('killed')
    const operator = await harness.operate()
    await harness.create(name)
    await harness.untilReady(name)
    harness.proxy.interfere((seen) => (seen.method === 'DELETE' && concerns(seen, name) ? 'keep' : undefined))
    await harness.remove(name)
    await inTime(async () => (await harness.api.request('GET', `/v1/admin/buffers/${name}`)).status === 404)
    operator.child.kill('SIGKILL')
    await operator.exited()
    harness.proxy.interfere()
    const successor = await harness.operate()
    await harness.untilGone(name)
    await stop(successor)
    const told = (await harness.events()).filter(({ regarding }) => regarding.name === name)
    expect(told.filter(({ type }) => type === 'Warning')).to.deep.equal([])
  })

  function madeKey(wanted: object): Promise<{ keyId: string; secret: string }> {
    return harness.api.expect(201, 'POST', '/v1/admin/api-keys', { name: 'operator', ...wanted })
  }

  async function stop(operator: Service): Promise<void> {
    operator.child.kill('SIGTERM')
    expect(await operator.exited()).to.equal(0)
  }
})
