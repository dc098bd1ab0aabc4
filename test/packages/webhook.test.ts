/** A webhook as `packages/client` sends it. */
import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { webhookOf } from '../../packages/client/src/webhook.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const textOf = ({ body }: { body: Uint8Array }) => new TextDecoder().decode(body)

describe('a webhook', () => {
  it('has a random UUID for its id', () => {
    const [first, second] = [webhookOf({ n: 1 }, {}), webhookOf({ n: 1 }, {})]
    expect(first.messageId).to.match(UUID)
    expect(first.headers).to.deep.equal({ 'X-Idempotency-Key': first.messageId })
    expect(second.messageId).not.to.equal(first.messageId)
  })

  it('has the id of its payload first of all, and then that of its sender', () => {
    expect(webhookOf({ messageId: 'ü1' }, {})).to.deep.include({ messageId: 'ü1', headers: {} })
    expect(webhookOf({ messageId: 7 }, { messageId: '7' })).to.deep.include({ messageId: '7', headers: {} })
    expect(webhookOf({ messageId: null }, { messageId: 'm1' }).headers).to.deep.equal({
      'X-Idempotency-Key': 'm1',
    })
    expect(() => webhookOf({ messageId: 'a' }, { messageId: 'b' })).to.throw(TypeError, 'messageId differs')
  })

  it('has another id where that of its payload is blank, as for the service', () => {
    for (const payload of [{ messageId: '' }, Buffer.from('{"messageId":""}')]) {
      expect(webhookOf(payload, { messageId: 'm1' }).headers).to.deep.equal({ 'X-Idempotency-Key': 'm1' })
      const { messageId, headers } = webhookOf(payload, {})
      expect(messageId).to.match(UUID)
      expect(headers).to.deep.equal({ 'X-Idempotency-Key': messageId })
    }
  })

  it('has the id that its sender wrote into the header', () => {
    const named = webhookOf({}, { headers: { 'x-idempotency-key': 'm1' } })
    expect(named).to.deep.include({ messageId: 'm1', headers: { 'X-Idempotency-Key': 'm1' } })
    const twice = { messageId: 'm2', headers: { 'x-idempotency-key': 'm1' } }
    expect(() => webhookOf({}, twice)).to.throw(TypeError, 'messageId differs from the header')
  })

  it('sends bytes as they are, and anything else as its JSON', () => {
    expect(textOf(webhookOf(Buffer.from('{ "n": 1.0 }'), {}))).to.equal('{ "n": 1.0 }')
    expect(textOf(webhookOf({ n: 1.0 }, {}))).to.equal('{"n":1}')
    expect(textOf(webhookOf('text', {}))).to.equal('"text"')
    expect(() => webhookOf(undefined, {})).to.throw(TypeError, 'payload must be')
  })

  it('is signed over the bytes that are sent', () => {
    const { body, headers, messageId } = webhookOf({ name: 'Åsa' }, { signing: { secret: 'sh4red' } })
    const signature = createHmac('sha256', 'sh4red').update(body).digest('hex')
    expect(headers).to.deep.equal({ 'X-Idempotency-Key': messageId, 'x-webhook-signature': signature })
    const other = webhookOf(body, {
      signing: { secret: 'sh4red', header: 'X-Own' },
      headers: { 'X-Customer': 'ada' },
    })
    expect(other.headers).to.include({ 'X-Own': signature, 'X-Customer': 'ada' })
    expect(() => webhookOf({}, { signing: { secret: '' } })).to.throw(TypeError, 'signing.secret')
  })

  it('has its headers in UTF-8, as the service reads them', () => {
    const { headers } = webhookOf({ messageId: 'm1' }, { headers: { 'X-Customer': 'Łódź' } })
    expect(Buffer.from(headers['X-Customer']!, 'latin1').toString()).to.equal('Łódź')
  })

  it('has an id that a header can hold', () => {
    for (const id of ['', ' m', 'm ', 'a\r\nb: c', 'ü', 'x'.repeat(513)])
      expect(() => webhookOf({}, { messageId: id }), id).to.throw(TypeError, 'messageId must be')
    expect(webhookOf({}, { messageId: 'x'.repeat(512) }).messageId).to.have.length(512)
  })
})
