/** What `packages/receiver` takes for a batch. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { BatchError, parseBatch } from '../../packages/receiver/src/batch.ts'
import { sign } from '../../packages/receiver/src/signature.ts'
import { SignatureError, unwrap } from '../../packages/receiver/src/unwrap.ts'
import { batchBody } from './batch-body.ts'

const KEY = { 'x-idempotency-key': 'grp:LPJNul:v7' }

describe('a batch', () => {
  it('has the parts of the delivery, and the key of its header', () => {
    const body = batchBody([{ n: 1 }, null])
    const batch = parseBatch<{ n: number } | null>(JSON.stringify(body), KEY)
    expect(batch).to.deep.equal({ ...body, idempotencyKey: 'grp:LPJNul:v7' })
    expect(batch.items[0]?.payload?.n).to.equal(1)
  })

  it('keeps fields that a later version of the service may add', () => {
    const body = { ...batchBody([1]), extra: { more: true } }
    expect(parseBatch(JSON.stringify(body), KEY)).to.deep.include({ extra: { more: true } })
  })

  it('takes its key from the header that the buffer names', () => {
    const text = JSON.stringify(batchBody([1]))
    const options = { idempotencyHeader: 'X-Key' }
    expect(parseBatch(text, { 'x-key': 'k' }, options).idempotencyKey).to.equal('k')
    expect(() => parseBatch(text, KEY, options)).to.throw(BatchError, 'header X-Key is required once')
  })

  const wrong: Record<string, (body: ReturnType<typeof batchBody>) => unknown> = {
    'body must be an object': () => [],
    'svc must be an object': ({ svc: _, ...body }) => body,
    'svc.groupKey must be a string': (body) => ({ ...body, svc: { ...body.svc, groupKey: 1 } }),
    'svc.segment must be a number': (body) => ({ ...body, svc: { ...body.svc, segment: '0' } }),
    'window must be an object': (body) => ({ ...body, window: null }),
    'window.itemsCount must be a number': (body) => ({
      ...body,
      window: { ...body.window, itemsCount: null },
    }),
    'items must be an array': (body) => ({ ...body, items: {} }),
    'items.1 must be an object': (body) => ({ ...body, items: [...body.items, 'x'] }),
    'items.0.messageId must be a string': (body) => ({
      ...body,
      items: [{ ...body.items[0], messageId: 5 }],
    }),
    'items.0.payload is required': (body) => ({ ...body, items: [{ messageId: 'm', receivedAt: 1 }] }),
  }
  for (const [message, change] of Object.entries(wrong)) {
    it(`is refused with the name of the field: ${message}`, () => {
      const text = JSON.stringify(change(batchBody([1])))
      expect(() => parseBatch(text, KEY)).to.throw(BatchError, message)
    })
  }

  it('is JSON in UTF-8', () => {
    for (const body of [Buffer.from('{'), Buffer.from([0x22, 0xff, 0x22]), Buffer.alloc(0)])
      expect(() => parseBatch(body, KEY)).to.throw(BatchError, 'body must be JSON in UTF-8')
  })

  it('is read only when it is signed', () => {
    const text = JSON.stringify(batchBody([1]))
    const signed = { ...KEY, 'x-svc-signature': sign(text, 's3cret') }
    expect(unwrap(text, signed, ['n3xt', 's3cret']).items).to.have.length(1)
    expect(() => unwrap(text, signed, 'other')).to.throw(SignatureError)
    expect(() => unwrap('{', KEY, 's3cret')).to.throw(SignatureError)
  })
})
