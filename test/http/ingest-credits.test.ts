import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { type Admin, type Answer, adminOf, bufferBody } from './caller.ts'
import { created, ingestHarnessOfSuite } from './ingest-harness.ts'

describe('credits of webhooks', () => {
  const harness = ingestHarnessOfSuite()

  describe('credits', () => {
    let poor: Admin

    before(async () => {
      poor = adminOf(harness.service.url, await harness.service.ownerKey('poor'))
      await created(poor.post('/v1/admin/projects', { projectId: 'poor', name: 'p' }))
      await created(poor.post('/v1/admin/buffers', bufferBody('poor', 'poor')))
      await harness.service.db`UPDATE customers SET credits = 3 WHERE customer_id = 'poor'`
    })

    it('answers 429 with balance and price, and still knows duplicates', async () => {
      const big = (messageId?: string): string =>
        JSON.stringify({ customer: 'c', messageId, text: 'x'.repeat(1800) })
      expect((await harness.ingest(big('m'), {}, 'poor/poor')).status).to.equal(202)
      const refused = await harness.ingest(big('n'), {}, 'poor/poor')
      expect(refused.status).to.equal(429)
      expect(refused.json).to.include({ credits: 1, required: 2 })
      expect(refused.json).to.have.keys('error', 'credits', 'required', 'message')
      expect((await harness.ingest(big(), {}, 'poor/poor')).status).to.equal(429)
      const duplicate = await harness.ingest(big('m'), {}, 'poor/poor')
      expect(duplicate.json).to.include({ duplicate: true, itemId: harness.service.inbox.items[0]!.itemId })
      harness.service.inbox.ownerAnswers = false
      expect((await harness.ingest(big('m'), {}, 'poor/poor')).status).to.equal(429)
      expect(harness.service.inbox.items).to.have.length(1)
      expect((await poor.get('/v1/admin/credits')).json).to.include({ credits: 1 })
      expect((await harness.ingest('{"customer":"c"}', {}, 'poor/poor')).status).to.equal(202)
    })
  })

  describe('padding', () => {
    const blanks = (bytes: number) => `{"customer":"c",${' '.repeat(bytes - 22)}"n":1}`
    const repeated = `{"customer":"c"${',"n":"xxxxxxxxxx"'.repeat(1_100)}}`
    const escaped = `{"customer":"c","n":"${'\\u0061'.repeat(3_000)}"}`
    const error = 'Request body is over 16384 bytes and more than 4 times its compact JSON'

    for (const [what, body] of [
      ['blanks', blanks(16_385)],
      ['a member given again and again', repeated],
      ['escapes', escaped],
    ] as const) {
      it(`of ${what} over 16 KiB is refused, for nothing`, async () => {
        const answer = await harness.ingest(body)
        expect([answer.status, answer.json]).to.deep.equal([413, { error }])
        await harness.changesNothing()
      })
    }

    it('of 16 KiB is taken, and so is a larger body with a quarter of content', async () => {
      expect(blanks(16_384)).to.have.length(16_384)
      expect((await harness.ingest(blanks(16_384))).status).to.equal(202)
      const text = 'x'.repeat(9_000)
      const half = `{"customer":"c",${' '.repeat(26_000)}"n":"${text}"}`
      expect((await harness.ingest(half)).status).to.equal(202)
      await eventually(async () => (await harness.balance()) === harness.credits - 1 - 9)
    })
  })

  describe('order of checks', () => {
    it('mends one fault after the other and meets the next', async () => {
      const broke = adminOf(harness.service.url, await harness.service.ownerKey('broke'))
      await created(broke.post('/v1/admin/projects', { projectId: 'broke', name: 'b' }))
      const config = { enabled: false, sourceVerification: { enabled: true, signingSecret: 'k' } }
      await created(broke.post('/v1/admin/buffers', bufferBody('broke', 'broke', config)))
      await harness.service.db`UPDATE customers SET credits = 0 WHERE customer_id = 'broke'`
      const deep = '['.repeat(65) + ']'.repeat(65)
      const tooLong = 'm'.repeat(513)
      const signed = (body: string) => ({
        'x-webhook-signature': createHmac('sha256', 'k').update(body).digest('hex'),
      })
      const errorOf = async (answer: Promise<Answer>) => {
        const { status, json, text } = await answer
        return `${status} ${(json as { error: string } | undefined)?.error ?? text.slice(0, 15)}`
      }
      const bad = { 'x-api-key': 'svk_x', 'x-idempotency-key': tooLong }
      expect(await errorOf(harness.ingest('{', bad, 'shop/broke-x'))).to.match(/^404 Buffer not found/)
      expect(await errorOf(harness.ingest('{', bad, 'shop/broke'))).to.match(/^400 Buffer does not belong/)
      expect(await errorOf(harness.ingest('{', bad, 'broke/broke'))).to.match(/^401 Unauthorized/)
      expect(await errorOf(harness.ingest('{', {}, 'broke/broke'))).to.match(/^400 Buffer is disabled/)
      await broke.patch('/v1/admin/buffers/broke', { enabled: true })
      expect(await errorOf(harness.ingest('{', {}, 'broke/broke'))).to.match(/^401 Missing signature/)
      expect(await errorOf(harness.ingest('{', signed('['), 'broke/broke'))).to.match(
        /^401 Invalid signature/,
      )
      expect(await errorOf(harness.ingest('{', signed('{'), 'broke/broke'))).to.match(/^400 <!DOCTYPE html>/)
      expect(await errorOf(harness.ingest(deep, signed(deep), 'broke/broke'))).to.match(/^400 .*nested/)
      const keyless = JSON.stringify({ messageId: tooLong })
      expect(await errorOf(harness.ingest(keyless, signed(keyless), 'broke/broke'))).to.match(
        /^400 Could not extract/,
      )
      const long = JSON.stringify({ customer: 'c', messageId: tooLong })
      expect(await errorOf(harness.ingest(long, signed(long), 'broke/broke'))).to.match(/^400 messageId/)
      const poor = JSON.stringify({ customer: 'c' })
      harness.service.inbox.fullFor.set('c', 'buffer')
      expect(await errorOf(harness.ingest(long, signed(long), 'broke/broke'))).to.match(/^400 messageId/)
      expect(await errorOf(harness.ingest(poor, signed(poor), 'broke/broke'))).to.match(/^503 Buffer holds/)
      harness.service.inbox.fullFor.clear()
      expect(await errorOf(harness.ingest(poor, signed(poor), 'broke/broke'))).to.match(/^429 /)
      await harness.changesNothing()
    })
  })

  describe('faults', () => {
    it('answers 503 and gives the credits back when the item cannot be stored', async () => {
      harness.service.inbox.mode = 'unavailable'
      const answer = await harness.ingest('{"customer":"c"}')
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1'])
      expect(answer.json).to.have.keys('error')
      harness.service.inbox.mode = 'store'
      await eventually(async () => (await harness.balance()) === harness.credits)
      await harness.changesNothing()
    })

    it('answers 500, tells nothing and gives the credits back when the inbox breaks', async () => {
      harness.service.inbox.mode = 'broken'
      const answer = await harness.ingest('{"customer":"c"}')
      expect([answer.status, answer.json]).to.deep.equal([500, { error: 'Internal server error' }])
      expect(answer.headers.get('x-request-id')).to.match(/^[0-9a-f-]{36}$/)
      expect(harness.service.told.failed.splice(0)).to.have.length(1)
      harness.service.inbox.mode = 'store'
      await eventually(async () => (await harness.balance()) === harness.credits)
      await harness.changesNothing()
    })

    it('settles or refunds by a verdict that comes late', async () => {
      harness.service.inbox.mode = 'late'
      for (const id of ['l1', 'l2', 'l3']) {
        const { status, json } = await harness.ingest(`{"customer":"c","messageId":"${id}"}`)
        expect(status).to.equal(202)
        expect(json).not.to.have.property('duplicate')
      }
      expect(await harness.balance()).to.equal(harness.credits - 3)
      const [paid, duplicate, lost] = harness.service.inbox.verdicts.splice(0)
      paid!('new')
      duplicate!('duplicate')
      lost!('unknown')
      await eventually(async () => (await harness.balance()) === harness.credits - 1)
      expect(harness.service.told.late.splice(0)).to.deep.equal(['new', 'duplicate', 'unknown'])
    })
  })
})
