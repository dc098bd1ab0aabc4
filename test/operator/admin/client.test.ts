import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { ServiceError } from '../../../internal/domain/errors.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { type AdminClient, createAdminClient } from '../../../operator/admin/client.ts'
import { AdminError, type AdminErrorKind, type BufferState } from '../../../operator/reconcile/ports.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { type Sink, type SinkAnswer, startSink } from '../../support/sink.ts'
import { KEY, stored } from '../reconcile/fixtures.ts'

const idle = new AbortController().signal
const options = { userAgent: 'penstock-operator/test', clock: systemClock() }

async function refusal(work: Promise<unknown>): Promise<AdminError> {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  if (error instanceof AdminError) return error
  throw new Error(`no AdminError: ${error}`)
}

describe('the client of the admin API', function () {
  this.timeout(120_000)

  describe('and the service', () => {
    let client: AdminClient
    let key: string
    let projectId: string

    before(async () => {
      const installation = await sharedInstallation()
      const api = installation.api()
      key = api.key!
      projectId = await api.createProject()
      client = createAdminClient({ ...options, url: installation.service.url })
    })

    after(() => client?.close())

    const creation = (bufferId: string) => ({
      bufferId,
      projectId,
      name: bufferId,
      delivery: { url: 'http://127.0.0.1:9/' },
      groupKey: { mode: 'jsonpath', path: '$.group' },
    })

    it('lists the buffers of an account, and says whose the key is', async () => {
      const bufferId = `listed-${process.pid}`
      const created = await client.create(key, creation(bufferId), idle)
      const { customerId, projects } = await client.holder(key, idle)
      expect({ customerId, projects }).to.deep.equal({ customerId: created.customerId, projects: null })
      const listed = await client.list(key, customerId, idle)
      expect(listed!.find((each) => each.bufferId === bufferId)).to.deep.equal(created)
      expect((await refusal(client.list(key, 'globex', idle))).kind).to.equal('forbidden')
    })

    it('hears how buffers stand, at once and when something changed', async () => {
      const bufferId = `stands-${process.pid}`
      await client.create(key, creation(bufferId), idle)
      const stateOf = (buffers: readonly BufferState[]) => buffers.find((each) => each.bufferId === bufferId)
      const { tag, buffers } = await client.states(key, { waitSeconds: 0 }, idle)
      expect(stateOf(buffers)).to.include({ enabled: true, deadLetters: 0 })
      const waited = client.states(key, { after: tag, waitSeconds: 50 }, idle)
      await client.update(key, bufferId, { enabled: false }, idle)
      expect(stateOf((await waited).buffers)).to.include({ enabled: false })
    })

    it('creates, reads, changes and deletes a buffer', async () => {
      const bufferId = `client-${process.pid}`
      expect(await client.read(key, bufferId, idle)).to.equal(undefined)
      const created = await client.create(key, creation(bufferId), idle)
      expect(created).to.deep.include({ bufferId, projectId, enabled: true })
      expect(await client.read(key, bufferId, idle)).to.deep.equal(created)
      expect((await client.update(key, bufferId, { name: 'changed' }, idle)).name).to.equal('changed')
      expect((await refusal(client.create(key, creation(bufferId), idle))).kind).to.equal('exists')
      expect(await client.remove(key, bufferId, idle)).to.equal(true)
      expect(await client.remove(key, bufferId, idle)).to.equal(false)
      expect((await refusal(client.update(key, bufferId, { name: 'x' }, idle))).kind).to.equal('absent')
    })

    it('tells its refusals apart, in the words of the service', async () => {
      const bad = await refusal(client.create(key, { ...creation('bad'), dlqPauseThreshold: 99 }, idle))
      expect(bad).to.deep.include({ kind: 'invalid' })
      expect(bad.message).to.include('dlqPauseThreshold')
      expect((await refusal(client.read(KEY, 'any', idle))).kind).to.equal('unauthorized')
      const api = (await sharedInstallation()).api()
      const viewer = await api.createKey({ role: 'viewer' })
      const forbidden = await refusal(client.create(viewer.secret, creation('viewed'), idle))
      expect(forbidden.kind).to.equal('forbidden')
      expect(forbidden.message).to.include('Requires one of the following roles')
      await api.expect(204, 'DELETE', `/v1/admin/api-keys/${viewer.keyId}`)
    })
  })

  describe('and servers that answer badly', () => {
    let sink: Sink
    let client: AdminClient
    /** For answers that do not come or do not end. */
    let hasty: AdminClient

    before(async () => {
      sink = await startSink()
      client = createAdminClient({ ...options, url: sink.url('/base') })
      hasty = createAdminClient({ ...options, url: sink.url('/base'), timeoutMs: 500 })
    })

    afterEach(() => sink.clear())

    after(async () => {
      await client.close()
      await hasty.close()
      await sink.close()
    })

    const json = (status: number, body: unknown, headers = {}): SinkAnswer => ({
      status,
      headers,
      body: JSON.stringify(body),
    })
    const table: readonly [title: string, answer: SinkAnswer, kind: AdminErrorKind][] = [
      ['500', json(500, { error: 'Internal server error' }), 'unavailable'],
      ['503 without JSON', { status: 503, body: 'down' }, 'unavailable'],
      ['404 of a route that is not there', json(404, { error: 'Not found' }), 'unavailable'],
      ['404 of another server', { status: 404, body: '<html>' }, 'unavailable'],
      ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:9/' } }, 'unavailable'],
      ['400 of another server', { status: 400, body: 'bad' }, 'unavailable'],
      ['200 that is no buffer', json(200, { bufferId: 'orders' }), 'unavailable'],
      ['200 of another buffer', json(200, { ...stored(), bufferId: 'other' }), 'unavailable'],
      ['an endless body', { fault: 'endless' }, 'unavailable'],
      ['a body that never ends', { fault: 'drip' }, 'unavailable'],
      ['no answer', { fault: 'hang' }, 'unavailable'],
      ['a broken connection', { fault: 'reset' }, 'unavailable'],
      ['half an answer', { fault: 'half' }, 'unavailable'],
      ['what is no HTTP', { fault: 'garbage' }, 'unavailable'],
      ['429', json(429, { error: 'slowly' }), 'throttled'],
      ['409 of a taken id', json(409, { error: 'Buffer already exists' }), 'exists'],
      ['409 of a limit', json(409, { error: 'enough', code: 'limit_reached' }), 'full'],
      ['403', json(403, { error: 'Forbidden' }), 'forbidden'],
      ['403 account_suspended', json(403, new ServiceError('accountSuspended').body), 'suspended'],
    ]
    for (const [title, answer, kind] of table) {
      it(`counts ${title} as ${kind}`, async () => {
        sink.otherwise(answer)
        const error = await refusal((answer.fault ? hasty : client).read(KEY, 'orders', idle))
        expect(error.kind).to.equal(kind)
        expect(error.message).to.not.include(KEY)
      })
    }

    it('keeps the path of its base address, and sends the key with each request', async () => {
      sink.otherwise(json(404, { error: 'Buffer not found' }))
      expect(await client.read(KEY, 'orders', idle)).to.equal(undefined)
      const [request] = sink.requests()
      expect(request?.path).to.equal('/base/v1/admin/buffers/orders')
      expect(request?.headers).to.include({ 'x-api-key': KEY, 'user-agent': 'penstock-operator/test' })
    })

    it('takes a 404 of another server for no deletion', async () => {
      sink.otherwise({ status: 404, body: '<html>' })
      expect((await refusal(client.remove(KEY, 'orders', idle))).kind).to.equal('unavailable')
    })

    it('reads Retry-After in seconds and as a date, within bounds', async () => {
      const asked = async (text: string) => {
        sink.otherwise(json(429, { error: 'slowly' }, { 'retry-after': text }))
        return (await refusal(client.read(KEY, 'orders', idle))).retryAfterMs
      }
      expect(await asked('7')).to.equal(7_000)
      expect(await asked('99999999')).to.equal(300_000)
      expect(await asked('Thu, 01 Jan 1970 00:00:00 GMT')).to.equal(0)
      expect(await asked(new Date(Date.now() + 3_600_000).toUTCString())).to.equal(300_000)
      expect(await asked('soon')).to.equal(undefined)
    })

    it('reads a buffer while many requests for the states of others get no answer', async () => {
      sink.otherwise(({ path }) =>
        path.includes('/buffer-states') ? { fault: 'hang' } : json(404, { error: 'Buffer not found' }),
      )
      const abort = new AbortController()
      const hanging = Array.from({ length: 50 }, (_, index) =>
        client.states(`svk_${index}`, { waitSeconds: 0 }, abort.signal).catch((error: unknown) => error),
      )
      await sink.waitForCount(50)
      expect(await client.read(KEY, 'orders', idle)).to.equal(undefined)
      abort.abort(new Error('the operator stops'))
      await Promise.all(hanging)
    })

    it('gives up when it is told to', async () => {
      sink.otherwise({ fault: 'hang' })
      const abort = new AbortController()
      const reading = client.read(KEY, 'orders', abort.signal)
      await sink.waitForCount(1)
      abort.abort(new Error('the operator stops'))
      const error = await reading.catch((failure: unknown) => failure)
      expect(error).to.deep.include({ message: 'the operator stops' })
    })
  })
})
