/** `packages/client` against the service, through a network that loses answers. */
import { createHmac, randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { NoAnswerError, RefusedError } from '../../packages/client/src/errors.ts'
import { createPenstock, must, type Penstock } from '../../packages/client/src/penstock.ts'
import { type Channel, harness, NEVER_DUE } from '../e2e/harness.ts'
import { eventually } from '../support/eventually.ts'
import { inTurn, redirectTo } from '../support/sink.ts'
import { LossyFront } from './lossy-front.ts'

const QUICK = { initialMs: 10, maxMs: 20 }

describe('the client', function () {
  this.timeout(120_000)
  const on = harness()
  let front: LossyFront
  let penstock: Penstock
  before(async () => {
    front = await LossyFront.start(() => on.installation.service.url)
  })
  beforeEach(() => {
    front.taken()
    penstock = createPenstock({ url: front.url, apiKey: on.api.key!, retries: QUICK })
  })
  after(() => front?.stop())

  describe('sends a webhook', () => {
    let channel: Channel
    before(async () => {
      channel = await on.channel({
        batch: { ...NEVER_DUE, maxItems: 2 },
        sourceVerification: { enabled: true, signingSecret: 'sh4red' },
      })
    })
    const signing = { secret: 'sh4red' }

    it('once, although the answers were lost: every attempt has one id, one body and one signature', async () => {
      front.spoil('lost', 'away', 'lost')
      const sent = await penstock.ingest(channel, { group: 'ada', n: 1 }, { signing })
      const attempts = front.taken()
      expect(attempts.map(({ status }) => status)).to.deep.equal([202, undefined, 202, 202])
      const same = attempts.map(({ body, headers }) =>
        [body, headers['x-idempotency-key'], headers['x-webhook-signature']].join(' '),
      )
      expect(new Set(same).size).to.equal(1)
      expect(attempts[0]!.headers['x-idempotency-key']).to.equal(sent.messageId)
      expect(attempts[0]!.headers).not.to.have.property('x-api-key')
      await channel.send(...signedPair({ group: 'ada', n: 2 }))
      const [batch] = await channel.untilBatches(1, 30_000)
      expect(batch!.items.map(({ payload }) => payload.n)).to.deep.equal([1, 2])
      expect(batch!.items[0]!.messageId).to.equal(sent.messageId)
    })

    it('whose id stands in the body only, again as well', async () => {
      front.spoil('lost')
      const messageId = `ü-${randomUUID()}`
      const sent = await penstock.ingest(channel, { group: 'eve', messageId }, { signing })
      expect(sent).to.include({ messageId })
      expect(front.taken()).to.have.length(2)
    })

    it('that is refused once only, and tells why', async () => {
      const refused = await failure(penstock.ingest(channel, { group: 'ada' }))
      expect(refused).to.be.instanceOf(RefusedError)
      expect(refused).to.include({ status: 401 })
      expect(refused.message).to.match(/^POST \/v1\/ingest\/\S+: 401 Missing signature header$/)
      expect((refused as RefusedError).requestId).to.be.a('string')
      expect(front.taken()).to.have.length(1)
    })

    it('until its caller has enough', async () => {
      front.spoil('away', 'away', 'away', 'away', 'away', 'away')
      const ended = AbortSignal.timeout(50)
      const error = await failure(penstock.ingest(channel, { group: 'ada' }, { signing, signal: ended }))
      expect(error).to.equal(ended.reason)
      expect(front.taken().length).to.be.below(6)
      front.forgive()
    })
  })

  it('repeats what reads, and waits as long as Retry-After says', async () => {
    const begin = performance.now()
    front.spoil('lost', 'away')
    expect(await penstock.whoAmI()).to.include({ customerId: on.api.customerId, role: 'owner' })
    expect(front.taken()).to.have.length(3)
    expect(performance.now() - begin).to.be.least(1_000)
  })

  it('repeats nothing that changes something, not even when the service did not hear it', async () => {
    for (const fault of ['lost', 'away'] as const) {
      front.spoil(fault)
      const projectId = `project-${randomUUID()}`
      const create = penstock.api.POST('/v1/admin/projects', { body: { projectId, name: 'One' } })
      const outcome = await create.catch((error: unknown) => error as Error)
      if (fault === 'lost') expect(outcome).to.be.instanceOf(NoAnswerError)
      else expect((outcome as Awaited<typeof create>).response.status).to.equal(503)
      expect(front.taken(), fault).to.have.length(1)
    }
  })

  it('gives up after its attempts, and names the service and the reason', async () => {
    const away = createPenstock({
      url: 'http://127.0.0.1:9',
      apiKey: 'k',
      retries: { ...QUICK, attempts: 3 },
    })
    const error = await failure(away.whoAmI())
    expect(error).to.be.instanceOf(NoAnswerError)
    expect(error.message).to.match(/^no answer from http:\/\/127\.0\.0\.1:9 after 3 attempts: /)
  })

  it('hands over an answer that asks for too long a pause', async () => {
    on.sink.on(
      '/base/v1/admin/whoami',
      inTurn({ status: 503, headers: { 'retry-after': '3600' }, body: '{"error":"away"}' }, {}),
    )
    const error = await failure(createPenstock({ url: on.sink.url('/base'), apiKey: 'k' }).whoAmI())
    expect(error).to.be.instanceOf(RefusedError).and.include({ status: 503 })
  })

  it('takes an answer that breaks off, or does not come in time, for none', async () => {
    const url = on.sink.url('/base')
    for (const fault of ['half', 'hang', 'drip'] as const) {
      on.sink.on('/base/v1/admin/whoami', inTurn({ fault, status: 200 }, { body: '{"customerId":"a"}' }))
      const impatient = createPenstock({ url, apiKey: 'k', retries: QUICK, timeoutMs: 300 })
      expect(await impatient.whoAmI(), fault).to.deep.equal({ customerId: 'a' })
    }
  })

  it('takes its key to no other place', async () => {
    const url = on.sink.url('/base')
    on.sink.on('/base/v1/admin/whoami', redirectTo(on.sink.url('/elsewhere')))
    await failure(createPenstock({ url, apiKey: 'k', retries: { ...QUICK, attempts: 1 } }).whoAmI())
    expect(on.sink.requests('/elsewhere')).to.deep.equal([])
  })

  it('refuses addresses and ids that would name something else', async () => {
    for (const url of ['', 'ftp://x', 'not', 'http://u:p@x', 'http://x/?a', 'http://x/#a'])
      expect(() => createPenstock({ url }), url).to.throw(TypeError, 'url must be')
    for (const bufferId of ['', '.', '..']) {
      const error = await failure(penstock.ingest({ projectId: 'p', bufferId }, {}))
      expect(error.message).to.include('bufferId must not be')
    }
    expect(front.taken()).to.deep.equal([])
  })

  it('walks buffers and projects', async () => {
    const channel = await on.channel()
    const found: string[] = []
    for await (const { bufferId } of penstock.buffers({ projectId: channel.projectId })) found.push(bufferId)
    expect(found).to.include(channel.bufferId)
    const projects: string[] = []
    for await (const { projectId } of penstock.projects()) projects.push(projectId)
    expect(projects).to.include(channel.projectId)
  })

  it('walks audit records, over as many pages as there are', async () => {
    const project = await on.api.createProject()
    const since = Date.now() - 3_600_000
    for (let n = 0; n < 120; n++)
      await on.api.expect(200, 'PATCH', `/v1/admin/projects/${project}`, { name: `n${n}` })
    await eventually(async () => (await changesOf(project, since)) === 120, { timeoutMs: 30_000 })
    expect(front.taken().length).to.be.above(1)
  })

  it('walks dead letters of a buffer, oldest first, and retries them', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 1 }, dlqPauseThreshold: 10 })
    channel.answer({ status: 400 })
    for (const n of [1, 2, 3]) {
      await penstock.ingest(channel, { group: `g${n}`, n })
      await channel.untilDead(n, 30_000)
    }
    channel.answer({ status: 200 })
    const retried: string[] = []
    for await (const { dlqId, bufferId, groupKey } of penstock.deadLetters({ bufferId: channel.bufferId })) {
      expect(bufferId).to.equal(channel.bufferId)
      const result = await penstock.api.POST('/v1/dlq/{dlqId}/retry', { params: { path: { dlqId } } })
      expect(must('retry', result).status).to.equal('delivered')
      retried.push(groupKey)
    }
    expect(retried).to.deep.equal(['g1', 'g2', 'g3'])
    expect(await channel.api.deadLetters(channel.bufferId)).to.deep.equal([])
  })

  /** How often the project was changed; throws when a record came twice. */
  async function changesOf(project: string, since: number): Promise<number> {
    const seen = new Set<string>()
    let changes = 0
    for await (const { auditId, target, method } of penstock.auditRecords({ since })) {
      expect(seen.has(auditId)).to.equal(false)
      seen.add(auditId)
      if (method === 'PATCH' && JSON.stringify(target).includes(project)) changes++
    }
    return changes
  }

  /** As `Channel.send` takes them. */
  function signedPair(payload: object): [object, Record<string, string>] {
    return [payload, { 'x-webhook-signature': signatureOf(payload) }]
  }
})

function signatureOf(payload: object): string {
  return createHmac('sha256', 'sh4red').update(JSON.stringify(payload)).digest('hex')
}

async function failure(work: Promise<unknown>): Promise<Error> {
  return work.then(
    () => expect.fail('it did not fail'),
    (error: Error) => error,
  )
}
