/** Buffers with a secret that cannot be opened (docs/decisions/0041-keys-of-secrets.md): what they cost, and whom. */
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { createBufferCache } from '../../internal/buffers/cache.ts'
import { sign } from '../../internal/domain/signature.ts'
import { createBufferRows } from '../../internal/postgres/buffers.ts'
import { createSecretBox } from '../../internal/postgres/secrets.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { type Admin, adminOf, bufferBody, call } from './caller.ts'
import { startService, type TestService } from './service.ts'

const REFUSAL = { error: 'A secret of this buffer cannot be read, set it anew', code: 'secret_unreadable' }
const LOST = createSecretBox([{ id: 'lost', key: randomBytes(32) }])
const SOURCE = ['sourceVerification', 'signingSecret']
const PREVIOUS = ['sourceVerification', 'previousSecret']
const SIGNING = ['delivery', 'signing', 'secret']
const HEADER = ['delivery', 'headers', 'x-token']

/** How a stored secret may become one that nobody can open. */
const damages: Readonly<Record<string, (sealed: string, place: string[]) => string>> = {
  'under a missing key': (_, place) => LOST.seal('hush', place),
  'with a damaged text': (sealed) => `${sealed.slice(0, -6)}AAAAAA`,
}

describe('a buffer with a secret that cannot be read', () => {
  let service: TestService
  let admin: Admin
  let viewer: Admin
  before(async () => {
    service = await startService()
    const key = await service.ownerKey('acme')
    admin = adminOf(service.url, key)
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    const made = await admin.post('/v1/admin/api-keys', { name: 'v', role: 'viewer' })
    viewer = adminOf(service.url, (made.json as { secret: string }).secret)
    await create('good')
  })
  afterEach(() => expect(service.told.failed).to.deep.equal([]))
  after(() => service.stop())

  async function create(bufferId: string): Promise<void> {
    const { status, text } = await admin.post(
      '/v1/admin/buffers',
      bufferBody(bufferId, 'shop', {
        delivery: {
          url: 'http://127.0.0.1:9/',
          signing: { secret: 'sign' },
          headers: { 'x-token': 'token' },
        },
        sourceVerification: {
          enabled: true,
          signingSecret: 'source',
          previousSecret: 'before',
          signatureHeader: 'x-sig',
        },
      }),
    )
    expect(status, text).to.equal(201)
  }

  async function stored(bufferId: string, path: readonly string[]): Promise<string> {
    const [row] = await service.db<{ text: string }[]>`
      SELECT config #>> ${[...path]}::text[] AS text FROM buffers WHERE buffer_id = ${bufferId}`
    return row!.text
  }

  async function uidOf(bufferId: string): Promise<string> {
    const [row] = await service.db<{ uid: string }[]>`SELECT uid FROM buffers WHERE buffer_id = ${bufferId}`
    return row!.uid
  }

  /** Past all caches: no node was told of it, and none has read the buffer yet. */
  async function damage(
    bufferId: string,
    how: (typeof damages)[string],
    paths: readonly string[][],
  ): Promise<void> {
    const uid = await uidOf(bufferId)
    for (const path of paths) {
      const text = how(await stored(bufferId, path), [uid, ...path])
      await service.db`UPDATE buffers SET config = jsonb_set(config, ${path}::text[], to_jsonb(${text}::text))
        WHERE uid = ${uid}`
    }
  }

  /** As a new node: nothing of the buffer is in its memory. */
  async function fresh<T>(work: (url: string) => Promise<T>): Promise<T> {
    const { databaseUrl } = service
    const other = await startService({ databaseUrl })
    try {
      return await work(other.url)
    } finally {
      await other.stop()
    }
  }

  const ingest = (url: string, bufferId: string, secret = 'source') => {
    const body = '{"customer":"c"}'
    const signature = sign(secret, Buffer.from(body))
    return call(`${url}/v1/ingest/shop/${bufferId}`, {
      method: 'POST',
      headers: { 'x-sig': signature },
      body,
    })
  }

  for (const [title, how] of Object.entries(damages)) {
    describe(title, () => {
      const id = (name: string) => `${name}-${title.replaceAll(' ', '-')}`

      it('is listed with the others, without what cannot be read', async () => {
        await create(id('listed'))
        await damage(id('listed'), how, [SOURCE, SIGNING])
        const { status, json } = await admin.get('/v1/admin/buffers?customerId=acme')
        expect(status).to.equal(200)
        const list = json as { bufferId: string; delivery: object; sourceVerification: object }[]
        expect(list.map(({ bufferId }) => bufferId)).to.include.members(['good', id('listed')])
        const bad = list.find(({ bufferId }) => bufferId === id('listed'))!
        expect(bad.delivery).to.have.nested.property('signing.secret', '[unreadable]')
        expect(bad.delivery).to.have.nested.property('headers.x-token', 'token')
        expect(bad.sourceVerification).to.have.property('signingSecret', '[unreadable]')
        const one = await viewer.get(`/v1/admin/buffers/${id('listed')}`)
        expect(one.status).to.equal(200)
        expect(one.text).to.not.include('unreadable')
      })

      it('is refused 503 at ingest when it verifies its senders, and no other one is', async () => {
        await create(id('source'))
        await damage(id('source'), how, [SOURCE])
        await create(id('signing'))
        await damage(id('signing'), how, [SIGNING, HEADER])
        await fresh(async (url) => {
          const refused = await ingest(url, id('source'))
          expect([refused.status, refused.json]).to.deep.equal([503, REFUSAL])
          expect(refused.headers.get('retry-after')).to.equal('60')
          expect((await ingest(url, 'good')).status).to.equal(202)
          expect((await ingest(url, id('signing'))).status, 'only its deliveries are held').to.equal(202)
        })
      })

      it('is refused 503 also when its previous secret is lost, until that is removed', async () => {
        await create(id('previous'))
        await damage(id('previous'), how, [PREVIOUS])
        await fresh(async (url) => {
          for (const secret of ['source', 'before']) {
            const refused = await ingest(url, id('previous'), secret)
            expect([refused.status, refused.json]).to.deep.equal([503, REFUSAL])
          }
        })
        const path = `/v1/admin/buffers/${id('previous')}`
        const sealed = await stored(id('previous'), PREVIOUS)
        const renamed = await admin.patch(path, { name: 'renamed' })
        expect(renamed.json).to.have.nested.property('sourceVerification.previousSecret', '[unreadable]')
        expect(await stored(id('previous'), PREVIOUS)).to.equal(sealed)
        await admin.patch(path, { sourceVerification: { previousSecret: null } })
        expect((await ingest(service.url, id('previous'))).status).to.equal(202)
        expect((await ingest(service.url, id('previous'), 'before')).status).to.equal(401)
      })

      it('can be neither copied nor tested nor retried, and says why', async () => {
        await create(id('used'))
        await damage(id('used'), how, [HEADER])
        const { dlqId } = await deadLetter(id('used'))
        for (const path of [
          `/v1/admin/buffers/${id('used')}/clone`,
          `/v1/admin/buffers/${id('used')}/test`,
          `/v1/dlq/${dlqId}/retry`,
        ]) {
          const { status, json } = await admin.post(path, path.endsWith('test') ? { payload: {} } : {})
          expect([path, status, json]).to.deep.equal([path, 503, REFUSAL])
        }
        const list = await admin.get(`/v1/dlq?customerId=acme&bufferId=${id('used')}`)
        expect([list.status, list.text.includes(dlqId)]).to.deep.equal([200, true])
      })

      it('keeps the sealed text over other changes, and is healed by a new secret', async () => {
        await create(id('healed'))
        await damage(id('healed'), how, [SOURCE, SIGNING])
        const before = [await stored(id('healed'), SOURCE), await stored(id('healed'), SIGNING)]
        const path = `/v1/admin/buffers/${id('healed')}`
        const read = (await admin.get(path)).json as { delivery: object; sourceVerification: object }
        const { delivery, sourceVerification } = read
        const renamed = await admin.patch(path, { name: 'renamed', delivery, sourceVerification })
        expect([renamed.status, (renamed.json as { name: string }).name]).to.deep.equal([200, 'renamed'])
        expect([await stored(id('healed'), SOURCE), await stored(id('healed'), SIGNING)]).to.deep.equal(
          before,
        )
        const half = await admin.patch(path, { sourceVerification: { signingSecret: 'anew' } })
        expect(half.json).to.have.nested.property('sourceVerification.signingSecret', 'anew')
        expect(half.json).to.have.nested.property('delivery.signing.secret', '[unreadable]')
        expect((await ingest(service.url, id('healed'), 'anew')).status).to.equal(202)
        const whole = await admin.patch(path, { delivery: { signing: { secret: 'new' } } })
        expect(whole.text).to.not.include('unreadable')
        const [row] = await service.db<{ keys: string }[]>`
          SELECT secret_keys(config) AS keys FROM buffers WHERE buffer_id = ${id('healed')}`
        expect(row!.keys).to.equal('test')
      })

      it('keeps no cache from knowing that it heard of all changes', async () => {
        await create(id('changed'))
        const box = createSecretBox([{ id: 'test', key: new Uint8Array(32).fill(7) }])
        const told: string[] = []
        const rows = createBufferRows(service.db, box, ({ buffer }) => told.push(buffer.bufferId))
        const cache = createBufferCache({ rows, clock: systemClock() })
        const uid = await uidOf(id('changed'))
        await cache.load(uid)
        await damage(id('changed'), how, [SIGNING])
        await cache.changed([uid])
        expect(cache.peek(uid)?.unreadable).to.include({ source: false, delivery: true })
        expect(cache.peek(uid)?.unreadable?.why).to.match(/delivery\.signing\.secret cannot be read/)
        expect(told).to.deep.equal([id('changed')])
      })
    })
  }

  it('is not made by a placeholder: no secret is stored that it could stand for', async () => {
    const answer = await admin.post(
      '/v1/admin/buffers',
      bufferBody('marked', 'shop', {
        delivery: { url: 'http://127.0.0.1:9/', signing: { secret: '[unreadable]' } },
      }),
    )
    expect([answer.status, (answer.json as { error: string }).error]).to.deep.equal([
      400,
      'delivery.signing.secret is [unreadable], but none is stored',
    ])
    const sent = await admin.patch('/v1/admin/buffers/good', {
      delivery: { signing: { secret: '[unreadable]' } },
    })
    expect(sent.json).to.have.nested.property('delivery.signing.secret', 'sign')
  })

  async function deadLetter(bufferId: string): Promise<{ dlqId: string }> {
    const dlqId = `dead-${bufferId}`
    await service.db`
      INSERT INTO dlq_items (dlq_id, customer_id, project_id, buffer_id, buffer_uid, group_id, version,
        group_key, reason, last_error, last_status_code, attempt, item_count, message_ids, first_payload_preview,
        segment, first_item_at, last_activity_at, payload_bytes, body, body_sha256, created_at)
      SELECT ${dlqId}, 'acme', 'shop', buffer_id, uid, ${dlqId}, 1, '"k"', 'max_retries_exceeded', 'HTTP 500',
        500, 2, 1, '["m"]', '"1"', 0, 1, 2, 1, decode('7b7d', 'hex'), decode(repeat('00', 32), 'hex'), 3
      FROM buffers WHERE buffer_id = ${bufferId}`
    return { dlqId }
  }
})
