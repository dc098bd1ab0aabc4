import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { kubeOrSkip, namespace } from '../../kube/kube.ts'
import type { Service } from '../../support/service.ts'
import { freshPayer, sharedInstallation } from '../../support/shared-installation.ts'
import { concerns } from './admin-proxy.ts'
import { deletionWebhook } from './deletion-webhook.ts'
import { condition, inTime, Stand } from './stand.ts'

describe('a deleted Buffer resource', function () {
  this.timeout(240_000)
  let stand: Stand
  /** A namespace that a test deletes. */
  let doomed: string

  before(async function () {
    const cluster = await kubeOrSkip(this)
    stand = await Stand.open(cluster, await sharedInstallation())
    doomed = await namespace(cluster, 'doomed')
    await stand.createSecret('penstock', { apiKey: stand.api.key! }, doomed)
    await stand.operate({ PENSTOCK_WATCH_NAMESPACES: [...stand.namespaces, doomed].join(',') })
  })

  afterEach(() => stand.proxy.interfere())

  after(() => stand?.close())

  async function made(name: string, spec: object = {}, within = stand.namespace): Promise<void> {
    await stand.create(name, spec, within)
    await stand.untilReady(name, within)
  }

  async function statusAtService(name: string): Promise<number> {
    return (await stand.api.request('GET', `/v1/admin/buffers/${name}`)).status
  }

  it('takes its buffer along by one request', async () => {
    const name = stand.name('gone')
    await made(name)
    await stand.remove(name)
    await stand.untilGone(name)
    expect(await statusAtService(name)).to.equal(404)
    expect(stand.proxy.seen(name, 'DELETE').map(({ status }) => status)).to.deep.equal([204])
  })

  it('whose buffer is gone already goes too', async () => {
    const name = stand.name('missing')
    await made(name)
    await stand.api.deleteBuffer(name)
    await stand.remove(name)
    await stand.untilGone(name)
    expect((await stand.untilEvent(name, 'NotFound')).note).to.include(name)
  })

  it('waits while the service is down, and goes once it is back', async () => {
    const name = stand.name('held')
    await made(name)
    stand.proxy.interfere((seen) => (concerns(seen, name) ? 'reset' : undefined))
    await stand.remove(name)
    const held = await stand.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
    expect(condition(held, 'Ready')?.status).to.equal('False')
    await inTime(() => stand.proxy.seen(name, 'DELETE').length >= 3)
    expect(await statusAtService(name)).to.equal(200)
    stand.proxy.interfere()
    await stand.untilGone(name)
    expect(await statusAtService(name)).to.equal(404)
  })

  it('leaves its buffer where it shall', async () => {
    const name = stand.name('orphan')
    await made(name, { deletionPolicy: 'Orphan' })
    await stand.remove(name)
    await stand.untilGone(name)
    expect(await statusAtService(name)).to.equal(200)
    expect(stand.proxy.seen(name, 'DELETE')).to.have.length(0)
  })

  it('goes with the last key that worked when its Secret is gone', async () => {
    const name = stand.name('keyless')
    await stand.createSecret(name, { apiKey: stand.api.key! })
    await made(name, { credentialsRef: { name } })
    await stand.removeSecret(name)
    await stand.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    await stand.remove(name)
    await stand.untilGone(name)
    expect(await statusAtService(name)).to.equal(404)
  })

  it('goes with the last key that worked when its Secret has one of another account', async () => {
    const name = stand.name('swapped')
    const other = (await sharedInstallation()).api(await freshPayer(1))
    await stand.createSecret(name, { apiKey: stand.api.key! })
    await made(name, { credentialsRef: { name } })
    await stand.patchSecret(name, { apiKey: other.key! })
    // There the project is none.
    await stand.untilCondition(name, 'Stalled', { reason: 'InvalidSpec' })
    await stand.remove(name)
    await stand.untilGone(name)
    expect(stand.proxy.seen(name, 'DELETE').map(({ status }) => status)).to.deep.equal([404, 204])
    expect(await statusAtService(name)).to.equal(404)
  })

  it('that others hold longer is not ready any more', async () => {
    const name = stand.name('kept')
    await made(name)
    const { metadata } = await stand.read(name)
    await stand.patch(name, { metadata: { finalizers: [...metadata.finalizers!, 'example.com/other'] } })
    await stand.remove(name)
    const { status } = await stand.untilCondition(name, 'Ready', { status: 'False', reason: 'Deleted' })
    expect(status).to.not.have.any.keys('bufferId', 'ingestPath')
    expect(await statusAtService(name)).to.equal(404)
    await stand.patch(name, { metadata: { finalizers: null } })
    await stand.untilGone(name)
  })

  it('goes with its whole namespace', async () => {
    const names = Array.from({ length: 5 }, () => stand.name('doomed'))
    for (const name of names) await made(name, {}, doomed)
    await stand.removeNamespace(doomed)
    for (const name of names) await stand.untilGone(name, doomed)
    for (const name of names) expect(await statusAtService(name)).to.equal(404)
  })

  it('that is made anew at once has a buffer again', async () => {
    const name = stand.name('anew')
    await made(name, { displayName: 'old' })
    await stand.remove(name)
    await inTime(async () => {
      await stand.create(name, { displayName: 'new' })
      return true
    })
    await stand.untilReady(name)
    expect((await stand.api.readBuffer(name)).name).to.equal('new')
    const creations = stand.proxy.seen(name, 'POST').filter(({ status }) => status === 201)
    expect(creations).to.have.length(2)
  })

  it('that is deleted right behind its creation leaves nothing', async () => {
    const names = Array.from({ length: 20 }, () => stand.name('brief'))
    await Promise.all(
      names.map(async (name) => {
        await stand.create(name)
        await stand.remove(name)
      }),
    )
    for (const name of names) {
      await stand.untilGone(name)
      // A resource may be removed in spite of its finalizer (see below): its buffer goes after it then.
      await inTime(async () => (await statusAtService(name)) === 404)
    }
  })
})

describe('a resource that met an operator late', function () {
  this.timeout(240_000)
  let stand: Stand

  before(async function () {
    const cluster = await kubeOrSkip(this)
    stand = await Stand.open(cluster, await sharedInstallation())
  })

  after(() => stand?.close())

  it('deleted before its first reconcile, is simply gone', async () => {
    const name = stand.name('unmet')
    await stand.create(name)
    await stand.remove(name)
    await stand.untilGone(name)
    const operator = await stand.operate()
    const behind = stand.name('behind')
    await stand.create(behind)
    await stand.untilReady(behind)
    expect(stand.proxy.seen(name)).to.have.length(0)
    await stop(operator)
  })

  it('while its deletion was under way already, is removed in spite of its finalizer, and takes its buffer along', async () => {
    const prefix = stand.name('removed')
    const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
    const name = `${prefix}-late`
    const webhook = await deletionWebhook(prefix, async (asked) => {
      if (asked === name) await allowed
    })
    const withdraw = await stand.admit(webhook)
    // The API server asks a webhook that it has just heard of a moment later.
    await inTime(async () => {
      await stand.create(`${prefix}-probe`)
      await stand.remove(`${prefix}-probe`)
      return webhook.asked.length > 0
    })
    await stand.create(name)
    const removed = stand.remove(name)
    await inTime(() => webhook.asked.includes(name))
    const operator = await stand.operate()
    await stand.untilReady(name)
    allow()
    await removed
    await stand.untilGone(name)
    await inTime(async () => (await stand.api.request('GET', `/v1/admin/buffers/${name}`)).status === 404)
    expect(stand.proxy.seen(name, 'DELETE').map(({ status }) => status)).to.deep.equal([204])
    await withdraw()
    await webhook.close()
    await stop(operator)
  })

  it('and lost its Secret before it was looked at, takes its buffer along', async () => {
    const name = stand.name('recent')
    await stand.createSecret(name, { apiKey: stand.api.key! })
    const before = await stand.operate()
    await stand.create(name, { credentialsRef: { name } })
    await stand.untilReady(name)
    await stop(before)
    // What is in order is not asked about for a long time.
    const operator = await stand.operate({ PENSTOCK_VERIFY_SECONDS: '86400' })
    const behind = stand.name('behind')
    await stand.create(behind)
    await stand.untilReady(behind)
    await stand.removeSecret(name)
    await stand.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    await stand.remove(name)
    await stand.untilGone(name)
    expect((await stand.api.request('GET', `/v1/admin/buffers/${name}`)).status).to.equal(404)
    await stop(operator)
  })

  it('and whose key nobody knows any more, is let go after a while, and its buffer stays', async () => {
    const name = stand.name('stranded')
    const operator = await stand.operate()
    await stand.createSecret(name, { apiKey: stand.api.key! })
    await stand.create(name, { credentialsRef: { name } })
    await stand.untilReady(name)
    await stop(operator)
    await stand.removeSecret(name)
    await stand.remove(name)
    await stand.operate()
    const waiting = await stand.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    expect(waiting.metadata.deletionTimestamp).to.be.a('string')
    // A minute after the operator found it so.
    await stand.untilGone(name)
    expect((await stand.untilEvent(name, 'Orphaned')).type).to.equal('Warning')
    await stand.api.readBuffer(name)
    await stand.api.deleteBuffer(name)
  })

  async function stop(operator: Service): Promise<void> {
    operator.child.kill('SIGTERM')
    expect(await operator.exited()).to.equal(0)
  }
})
