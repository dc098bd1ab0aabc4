import { expect } from 'chai'
import { after, afterEach, before, beforeEach } from 'mocha'
import { type Admin, type Answer, adminOf, bufferBody, call } from './caller.ts'
import { startService, type TestService } from './service.ts'

/** A customer with projects and buffers to send webhooks to; every test starts with an empty inbox. */
export class IngestHarness {
  service!: TestService
  admin!: Admin
  ownerKey!: string
  /** Balance at the start of the test. */
  credits = 0

  async open(): Promise<void> {
    this.service = await startService()
    this.ownerKey = await this.service.ownerKey('acme')
    this.admin = adminOf(this.service.url, this.ownerKey)
    for (const projectId of ['shop', 'other']) {
      await created(this.admin.post('/v1/admin/projects', { projectId, name: projectId }))
    }
    await this.addBuffer('orders', {})
    await this.addBuffer('by-header', { groupKey: { mode: 'header', fallbackHeader: 'X-Tenant' } })
    await this.addBuffer('fallback', {
      groupKey: { mode: 'jsonpath', path: '$.constructor.name', fallbackHeader: 'constructor' },
    })
    await this.addBuffer('signed', {
      sourceVerification: { enabled: true, signingSecret: 's3cret', signatureHeader: 'X-Sig' },
    })
  }

  addBuffer(bufferId: string, config: Record<string, unknown>): Promise<void> {
    return created(this.admin.post('/v1/admin/buffers', bufferBody(bufferId, 'shop', config)))
  }

  async startOver(): Promise<void> {
    this.service.inbox.items.length = 0
    this.credits = await this.balance()
  }

  async balance(): Promise<number> {
    const { json } = await this.admin.get('/v1/admin/credits')
    return (json as { credits: number }).credits
  }

  ingest(
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
    path = 'shop/orders',
  ): Promise<Answer> {
    return call(`${this.service.url}/v1/ingest/${path}`, { method: 'POST', headers, body })
  }

  /** Nothing was stored or charged, and the next request works. */
  async changesNothing(): Promise<void> {
    expect(this.service.inbox.items).to.have.length(0)
    expect(await this.balance()).to.equal(this.credits)
    expect((await this.ingest('{"customer":"next"}')).status).to.equal(202)
    await this.startOver()
  }

  async refuses(answer: Promise<Answer>, status: number, error: string | RegExp): Promise<void> {
    const { status: got, json, headers, text } = await answer
    expect(got, text).to.equal(status)
    expect(headers.get('content-type')).to.match(/^application\/json/)
    const body = json as { error: string }
    if (typeof error === 'string') expect(body.error).to.equal(error)
    else expect(body.error).to.match(error)
    await this.changesNothing()
  }

  async refusesAsHtml(answer: Promise<Answer>): Promise<void> {
    const { status, headers, text } = await answer
    expect(status).to.equal(400)
    expect(headers.get('content-type')).to.match(/^text\/html/)
    expect(text).to.include('Bad Request')
    await this.changesNothing()
  }
}

export async function created(answer: Promise<Answer>): Promise<void> {
  const { status, text } = await answer
  expect(status, text).to.equal(201)
}

/** A harness for the suite that calls this; no test of it may end with an answer of 500 untold. */
export function ingestHarnessOfSuite(): IngestHarness {
  const harness = new IngestHarness()
  before(() => harness.open())
  beforeEach(async () => {
    harness.service.inbox.mode = 'store'
    harness.service.inbox.ownerAnswers = true
    await harness.startOver()
  })
  afterEach(() => expect(harness.service.told.failed).to.deep.equal([]))
  after(() => harness.service.stop())
  return harness
}
