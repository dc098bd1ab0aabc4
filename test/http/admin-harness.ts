import { expect } from 'chai'
import { after, afterEach, before } from 'mocha'
import { type Admin, type Answer, adminOf, bufferBody } from './caller.ts'
import { startService, type TestService } from './service.ts'

/** Callers of every role of one customer, and the owner of another. */
export class AdminHarness {
  service!: TestService
  owner!: Admin
  viewer!: Admin
  member!: Admin
  /** An admin's key for the project `lab` only. */
  scoped!: Admin
  /** The owner of another customer. */
  rival!: Admin
  ownerKey!: string

  async open(): Promise<void> {
    this.service = await startService()
    this.ownerKey = await this.service.ownerKey('acme')
    this.owner = adminOf(this.service.url, this.ownerKey)
    this.rival = adminOf(this.service.url, await this.service.ownerKey('rival'))
    await created(this.owner.post('/v1/admin/projects', { projectId: 'shop', name: 'Shop' }))
    await created(this.owner.post('/v1/admin/projects', { projectId: 'lab', name: 'Lab' }))
    await created(this.rival.post('/v1/admin/projects', { projectId: 'rival', name: 'R' }))
    this.viewer = await this.withKey({ name: 'viewer', role: 'viewer' })
    this.member = await this.withKey({ name: 'member', role: 'member' })
    this.scoped = await this.withKey({ name: 'scoped', role: 'admin', projectIds: ['lab'] })
    await created(this.owner.post('/v1/admin/buffers', secretBuffer('orders')))
  }

  async withKey(body: unknown): Promise<Admin> {
    const { status, json } = await this.owner.post('/v1/admin/api-keys', body)
    expect(status).to.equal(201)
    return adminOf(this.service.url, (json as { secret: string }).secret)
  }
}

/** Four secrets, all of them `hush`. */
function secretBuffer(bufferId: string): unknown {
  return bufferBody(bufferId, 'shop', {
    delivery: {
      url: 'http://127.0.0.1:9/',
      headers: { authorization: 'Bearer hush' },
      signing: { secret: 'hush' },
    },
    sourceVerification: { enabled: false, signingSecret: 'hush', previousSecret: 'hush' },
  })
}

async function created(answer: Promise<Answer>): Promise<void> {
  const { status, text } = await answer
  expect(status, text).to.equal(201)
}

/** An error answer in JSON; `error`: what its text must match. */
export async function refuses(answer: Promise<Answer>, status: number, error?: RegExp): Promise<void> {
  const { status: got, json, text, headers } = await answer
  expect(got, text).to.equal(status)
  expect(headers.get('content-type')).to.match(/^application\/json/)
  expect(json).to.have.property('error').that.is.a('string')
  if (error !== undefined) expect((json as { error: string }).error).to.match(error)
}

/** A harness for the suite that calls this; no test of it may end with an answer of 500. */
export function adminHarnessOfSuite(): AdminHarness {
  const harness = new AdminHarness()
  before(() => harness.open())
  afterEach(() => expect(harness.service.told.failed).to.deep.equal([]))
  after(() => harness.service.stop())
  return harness
}
