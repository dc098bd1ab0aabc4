/**
 * A suspended account, from outside (docs/decisions/0040-suspended-customers.md): on a local instance of its own, by the
 * command and its data folder.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { createInstallation } from '../support/service.ts'
import { type Channel, type ChannelFields, harness, payloadsOf, SOON } from './harness.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'cmd', 'account', 'main.ts')
/** What is due must not be due before the command has suspended the account, on a busy machine either. */
const DUE_MS = 10_000
const REFUSAL = { error: 'Account is suspended', code: 'account_suspended' }

describe('a suspended account', function () {
  this.timeout(240_000)
  const on = harness({
    async installation() {
      const installation = await createInstallation({ customers: ['good', 'bad'] })
      await installation.start()
      return installation
    },
  })
  let projectId: string | undefined

  async function channelOfBad(fields: ChannelFields): Promise<Channel> {
    const api = on.installation.api('bad')
    projectId ??= await api.createProject()
    return on.channel(fields, { api, projectId })
  }

  async function account(...args: string[]): Promise<string> {
    const env = { PATH: process.env.PATH, PENSTOCK_DATA_DIR: on.installation.dataDir }
    return (await promisify(execFile)(process.execPath, [MAIN, ...args], { env })).stdout
  }

  /** Long enough for whatever was due; what is sent last goes out. */
  async function pass(ms: number): Promise<void> {
    const control = await on.channel({ batch: { idleTimeoutMs: ms } })
    await control.send({ group: 'a' })
    await control.untilBatches(1, ms + 10_000)
  }

  it('is refused, and holds all that it was answered 202 for until it is resumed', async () => {
    const due = { batch: { idleTimeoutMs: DUE_MS } }
    const held = await channelOfBad(due)
    const deleted = await channelOfBad(due)
    const disabled = await channelOfBad({ ...due, enabled: true })
    const failing = await channelOfBad({
      batch: { ...SOON, maxItems: 1 },
      throughput: { maxAttempts: 3, backoff: { initialMs: DUE_MS, maxMs: DUE_MS } },
    })
    failing.answer({ status: 500 })
    await failing.send({ group: 'f' })
    await failing.untilRequests(1)
    await held.sendAll([1, 2, 3].map((n) => ({ group: 'a', n })))
    await deleted.send({ group: 'a' })
    await disabled.send({ group: 'a' })
    await disabled.patch({ enabled: false })
    await deleted.remove()

    expect(await account('bad', '--suspend')).to.match(/^bad is suspended: \d+ buffers changed\n$/)
    await eventually(async () => (await held.ingest({ group: 'a' })).status === 403)
    expect((await held.ingest({ group: 'a' })).json()).to.deep.equal(REFUSAL)
    const attempts = failing.requests().length
    expect(await held.read()).to.include({ enabled: true })
    await pass(DUE_MS + 2_000)
    for (const { path } of [held, deleted, disabled]) expect(on.sink.requests(path)).to.deep.equal([])
    expect(failing.requests().length, 'one may have been on its way').to.be.within(attempts, attempts + 1)
    expect(await held.api.deadLetters(failing.bufferId)).to.deep.equal([])

    failing.answer({})
    const before = failing.requests().length
    expect(await account('bad', '--resume')).to.match(/^bad is resumed: \d+ buffers changed\n$/)
    expect(payloadsOf(await held.untilItems(3)).map(({ n }) => n)).to.deep.equal([1, 2, 3])
    await deleted.untilItems(1)
    await failing.untilRequests(before + 1)
    expect(new Set(failing.requests().map(({ headers }) => headers['x-idempotency-key'])).size).to.equal(1)
    await eventually(async () => (await held.ingest({ group: 'a' })).status === 202)
    await pass(DUE_MS + 500)
    expect(disabled.requests(), 'it was disabled by itself').to.deep.equal([])
    expect(await disabled.read()).to.include({ enabled: false })
    await disabled.patch({ enabled: true })
    await disabled.untilItems(1)
  })

  it('keeps its dead letters, retries none, and changes nothing', async () => {
    const channel = await channelOfBad({ batch: SOON })
    channel.answer({ status: 400 })
    await channel.send({ group: 'a' })
    const [letter] = await channel.untilDead()
    channel.answer({})
    await account('bad', '--suspend')
    const { api } = channel
    const retry = () => api.request('POST', `/v1/dlq/${letter!.dlqId}/retry`, {})
    await eventually(async () => (await retry()).status === 403)
    expect((await retry()).json()).to.deep.equal(REFUSAL)
    expect(channel.requests()).to.have.length(1)
    const patched = await api.request('PATCH', `/v1/admin/buffers/${channel.bufferId}`, { name: 'x' })
    expect([patched.status, patched.json()]).to.deep.equal([403, REFUSAL])
    expect((await api.deadLetters(channel.bufferId)).map(({ dlqId }) => dlqId)).to.deep.equal([letter!.dlqId])
    await account('bad', '--resume')
    await eventually(async () => (await retry()).status === 200)
    expect(channel.requests()).to.have.length(2)
  })

  it('stays suspended over a restart', async () => {
    const channel = await channelOfBad({ batch: { idleTimeoutMs: DUE_MS } })
    await channel.send({ group: 'a' })
    await account('bad', '--suspend')
    await eventually(async () => (await channel.ingest({ group: 'a' })).status === 403)
    expect(channel.requests(), 'before the restart').to.deep.equal([])
    await on.installation.stop()
    await on.installation.start()
    expect((await channel.ingest({ group: 'a' })).json()).to.deep.equal(REFUSAL)
    await pass(DUE_MS)
    expect(channel.requests()).to.deep.equal([])
    await account('bad', '--resume')
    await channel.untilItems(1)
  })
})
