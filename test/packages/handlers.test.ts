/** The handlers of `packages/receiver`, in each framework: real deliveries of the service, and requests by hand. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { expect } from 'chai'
import express from 'express'
import Koa from 'koa'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { ReceiverOptions } from '../../packages/receiver/src/answer.ts'
import type { Batch } from '../../packages/receiver/src/batch.ts'
import { createHandler } from '../../packages/receiver/src/handler.ts'
import { sign } from '../../packages/receiver/src/signature.ts'
import { SignatureError } from '../../packages/receiver/src/unwrap.ts'
import { harness, NEVER_DUE } from '../e2e/harness.ts'
import { eventually } from '../support/eventually.ts'
import { batchBody } from './batch-body.ts'
import { FRAMEWORKS, served, stopped } from './frameworks.ts'

const MAX_BYTES = 20_000
const WAIT = { timeoutMs: 30_000 }

describe('a handler of batches', function () {
  this.timeout(120_000)
  const on = harness()
  const taken: Batch[] = []
  const errors: Error[] = []
  let onBatch: ReceiverOptions['onBatch'] = () => {}

  const handler = createHandler({
    secrets: ['n3xt', 's3cret'],
    maxBytes: MAX_BYTES,
    onBatch: async (batch, refuse) => {
      taken.push(batch)
      await onBatch(batch, refuse)
    },
    onError: (error) => errors.push(error as Error),
  })
  beforeEach(() => {
    taken.length = 0
    errors.length = 0
    onBatch = () => {}
  })

  for (const [name, framework] of Object.entries(FRAMEWORKS)) {
    describe(`with ${name}`, () => {
      let server: Server
      let url: string
      before(async () => {
        ;({ server, url } = await served(framework(handler)))
      })
      after(() => stopped(server))
      const channel = (fields: object = {}) =>
        on.channel({
          batch: { ...NEVER_DUE, maxItems: 2 },
          delivery: { url, signing: { secret: 's3cret' } },
          ...fields,
        })

      it('takes a delivery of the service', async () => {
        const buffer = await channel()
        await buffer.sendAll([
          { group: 'ada', messageId: 'a' },
          { group: 'ada', messageId: 'b' },
        ])
        const [batch] = await eventually(() => taken.length > 0 && taken, WAIT)
        expect(batch!.svc).to.include({ bufferId: buffer.bufferId, groupKey: 'ada' })
        expect(batch!.items.map(({ messageId }) => messageId)).to.deep.equal(['a', 'b'])
        expect(batch!.idempotencyKey).to.match(new RegExp(`^grp:${batch!.svc.groupHash}:v\\d+$`))
      })

      it('takes a test of a buffer', async () => {
        const { bufferId, api } = await channel()
        const path = `/v1/admin/buffers/${bufferId}/test`
        const test = await api.expect<object>(200, 'POST', path, { payload: { group: 'ada' } })
        expect(test).to.include({ success: true, statusCode: 200, responseBody: '{"failed":[]}' })
      })

      it('gets the same batch again after it threw', async () => {
        onBatch = () => {
          if (taken.length === 1) throw new Error('the database is away')
        }
        const throughput = { maxAttempts: 2, backoff: { initialMs: 100 } }
        await (await channel({ throughput })).sendAll([{ group: 'ada' }, { group: 'ada' }])
        await eventually(() => taken.length === 2, WAIT)
        expect(taken[1]).to.deep.equal(taken[0])
        expect(errors.map(({ message }) => message)).to.deep.equal(['the database is away'])
      })

      it('makes a dead letter of a batch that another secret signed', async () => {
        const wrong = await channel({ delivery: { url, signing: { secret: 'wrong' } } })
        await wrong.sendAll([{ group: 'ada' }, { group: 'ada' }])
        const [dead] = await wrong.untilDead(1, 30_000)
        expect(dead).to.include({ reason: 'non_retryable_error', lastStatusCode: 401 })
        expect(taken).to.deep.equal([])
      })

      it('answers 401 to a wrong signature, before it looks at the body', async () => {
        expect(await delivered(url, '{', { 'x-svc-signature': '00' })).to.deep.equal({
          status: 401,
          body: { error: 'the signature is missing or wrong' },
        })
        expect(taken).to.deep.equal([])
      })

      it('answers 400 to what is no batch', async () => {
        const { status, body } = await delivered(url, '{"items":[]}')
        expect([status, body]).to.deep.equal([400, { error: 'svc must be an object' }])
        const nameless = await delivered(url, JSON.stringify(batchBody([1])), { 'x-idempotency-key': '' })
        expect(nameless.status).to.equal(400)
        expect(taken).to.deep.equal([])
      })

      it('names the items that were refused', async () => {
        onBatch = (_batch, refuse) => {
          refuse('m1')
          refuse('m1')
        }
        const { status, body } = await delivered(url, JSON.stringify(batchBody([1, 2, 3])))
        expect([status, body]).to.deep.equal([200, { failed: ['m1'] }])
      })

      it('answers 500 when what is refused is no item: it would count as delivered', async () => {
        onBatch = (_batch, refuse) => refuse('m9')
        const { status, body } = await delivered(url, JSON.stringify(batchBody([1])))
        expect([status, body]).to.deep.equal([500, { error: 'the batch could not be taken' }])
        expect(errors[0]).to.be.instanceOf(RangeError)
      })

      it('answers 413 to a body above the limit, whether it tells its length or not', async () => {
        const large = JSON.stringify(batchBody(['x'.repeat(MAX_BYTES)]))
        expect((await delivered(url, large)).status).to.equal(413)
        const head = await headOfChunked(url, large)
        expect(head).to.match(/^HTTP\/1\.1 413 /)
        // The rest is not read. With `fetch` the connection is the server's own.
        if (name !== 'fetch') expect(head.toLowerCase()).to.include('connection: close')
        expect((await delivered(url, JSON.stringify(batchBody([1])))).status).to.equal(200)
        expect(taken).to.have.length(1)
      })
    })
  }

  it('says what stands in front of it when its body was read: a parser of Express', async () => {
    const { server, url } = await served(express().use(express.json()).post('/', handler.express))
    const { status } = await delivered(url, JSON.stringify(batchBody([1])))
    stopped(server)
    expect(status).to.equal(500)
    expect(errors[0]!.message).to.include('mount the handler before parsers')
  })

  it('says so with Koa, too', async () => {
    const app = new Koa().use(async ({ req }, next) => {
      for await (const _chunk of req);
      await next()
    })
    const { server, url } = await served(app.use(handler.koa).callback())
    const { status } = await delivered(url, JSON.stringify(batchBody([1])))
    stopped(server)
    expect(status).to.equal(500)
    expect(errors[0]!.message).to.include('mount the handler before parsers')
  })

  it('takes the raw body that Express has read', async () => {
    const { server, url } = await served(
      express()
        .use(express.raw({ type: '*/*' }))
        .post('/', handler.express),
    )
    const { status } = await delivered(url, JSON.stringify(batchBody([1])))
    stopped(server)
    expect(status).to.equal(200)
  })

  it('outlives a sender that goes away in the middle of a body', async () => {
    const { server, url } = await served(handler.node)
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{')
    await once(server, 'request')
    socket.destroy()
    await eventually(() => errors.length === 1, WAIT)
    expect(errors[0]!.name).to.equal('BodyBrokenError')
    expect((await delivered(url, JSON.stringify(batchBody([1])))).status).to.equal(200)
    stopped(server)
  })

  it('answers, although whoever is told of errors fails', async () => {
    const failing = createHandler({
      secrets: 's3cret',
      onBatch: () => {},
      onError: () => {
        throw new SignatureError('told')
      },
    })
    const { server, url } = await served(failing.node)
    expect((await delivered(url, '{}')).status).to.equal(400)
    stopped(server)
  })

  it('is not made of options that cannot work', () => {
    const work = () => {}
    expect(() => createHandler({ secrets: [], onBatch: work })).to.throw(TypeError, 'secrets must be')
    expect(() => createHandler({ secrets: 's', onBatch: undefined as never })).to.throw(TypeError, 'onBatch')
    expect(() => createHandler({ secrets: 's', onBatch: work, maxBytes: 0 })).to.throw(TypeError, 'maxBytes')
  })

  it('refuses to refuse an item of a batch that was answered', async () => {
    let late: () => void = () => {}
    onBatch = (_batch, refuse) => {
      late = () => refuse('m0')
    }
    const { server, url } = await served(handler.node)
    await delivered(url, JSON.stringify(batchBody([1])))
    stopped(server)
    expect(() => late()).to.throw('m0 is refused too late')
  })
})

function headersOf(body: string): Record<string, string> {
  return { 'x-svc-signature': sign(body, 's3cret'), 'x-idempotency-key': 'grp:LPJNul:v7' }
}

async function delivered(url: string, body: string, headers: Record<string, string> = {}) {
  const type = { 'content-type': 'application/json' }
  const response = await fetch(url, {
    method: 'POST',
    body,
    headers: { ...type, ...headersOf(body), ...headers },
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
}

/** In chunks, as a sender who does not know the length sends it; it never sends the end. The head of the answer. */
async function headOfChunked(url: string, body: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const head = Object.entries(headersOf(body)).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${head.join('')}transfer-encoding: chunked\r\n\r\n`)
  socket.write(`${body.length.toString(16)}\r\n${body}\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return answer.toString()
}
