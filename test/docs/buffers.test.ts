/** What docs/reference/buffers.md shows as JSON, through the API: examples of fields, presets, changes. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { fieldExamples } from '../../cmd/docs/buffers.ts'
import { schemaRows } from '../../cmd/docs/schema-rows.ts'
import { parseBufferCreate } from '../../internal/domain/buffer.ts'
import { bufferCreateSchema } from '../../internal/domain/buffer-schema.ts'
import type { Buffer as BufferResource } from '../../internal/domain/model.ts'
import { verifySignature } from '../../internal/domain/signature.ts'
import type { Schema } from '../../internal/http/schemas/shape.ts'
import { batchOf, Channel, countItems, harness, payloadsOf } from '../e2e/harness.ts'
import type { BufferFields } from '../support/api.ts'
import { pageText, rowsOf, section } from './pages.ts'

const PAGE = pageText('buffers.md')

describe('the examples of fields of a buffer', () => {
  const rows = schemaRows(bufferCreateSchema as unknown as Schema)

  it('make one buffer that can be created', () => {
    const body: Record<string, unknown> = {}
    for (const { path } of rows) if (path in fieldExamples) setAt(body, path, fieldExamples[path])
    const parsed = parseBufferCreate(body)
    expect(parsed.ok, parsed.ok ? '' : parsed.error).to.equal(true)
  })

  it('differ from the defaults, where a field has several values', () => {
    const several = rows.filter((row) => row.initial !== undefined && row.path in fieldExamples)
    const one = ['overflow.policy', 'delivery.signing.type', 'sourceVerification.algorithm']
    const same = several.filter(({ path, initial: value }) => fieldExamples[path] === value)
    expect(same.map(({ path }) => path)).to.have.members(one)
  })

  function setAt(body: Record<string, unknown>, path: string, value: unknown): void {
    const names = path.split('.')
    const last = names.pop()!
    let node = body
    for (const name of names) {
      node[name] ??= {}
      node = node[name] as Record<string, unknown>
    }
    node[last] = value
  }
})

describe('the presets of buffers', function () {
  this.timeout(120_000)
  const on = harness()
  const presets = [...section(PAGE, 'Presets').matchAll(/^\*\*(.+?)\.\*\*.*?^```json\n(.*?)^```$/gms)].map(
    ([, name = '', json = '']) => ({ name, body: JSON.parse(json) as BufferFields & { bufferId: string } }),
  )

  /** The body of the page, in a project of this run and under an id of its own. */
  async function create(name: string, change: Partial<BufferFields> = {}): Promise<BufferResource> {
    const { body } = presets.find((preset) => preset.name === name)!
    const projectId = await on.api.createProject()
    return on.api.createBuffer(projectId, `${body.bufferId}-${randomUUID()}`, { ...body, ...change })
  }

  it('are three', () => {
    expect(presets.map(({ name }) => name)).to.deep.equal(['Per chat', 'Per order', 'Bulk sync'])
  })

  for (const { name, body } of presets) {
    it(`create a buffer: ${name}`, async () => {
      const buffer = await create(name)
      expect(buffer.batch).to.deep.include(body.batch)
      expect(buffer.throughput.maxAttempts).to.equal(body.throughput?.maxAttempts)
      // Else a batch could never be as large as it may.
      expect(buffer.overflow.maxGroupItems).to.be.at.least(buffer.batch.maxItems)
      expect(buffer.overflow.maxGroupBytes).to.be.at.least(buffer.batch.maxBytes)
    })
  }

  it('deliver what was sent in its order and signed: Per chat', async () => {
    const path = `/${randomUUID()}`
    const secret = 'change-me'
    const { projectId, bufferId } = await create('Per chat', {
      delivery: { url: on.sink.url(path), signing: { secret } },
    })
    const channel = new Channel(on.installation, on.api, on.sink, projectId, bufferId)
    const lines = ['Hello', 'are you there?', 'It is about my order'].map((text) => ({ chatId: 'c1', text }))
    await channel.sendAll(lines)
    const batches = () => on.sink.requests(path).map(batchOf)
    await on.sink.waitFor(() => countItems(batches()) >= lines.length, 60_000)
    const received = on.sink.requests(path)
    expect(payloadsOf(batches())).to.deep.equal(lines)
    for (const { body, headers } of received)
      expect(verifySignature(secret, body, String(headers['x-svc-signature']))).to.equal(true)
  })
})

describe('the changes that the page shows', function () {
  this.timeout(120_000)
  const on = harness()
  const rows = rowsOf(PAGE, 'change', 'effect') as [change: string, effect: string][]
  /** What a change that is not refused makes of a buffer. */
  const made: Record<string, (buffer: BufferResource) => unknown> = {
    '{"batch":{"maxItems":100}}': ({ batch }) =>
      expect(batch).to.include({ maxItems: 100, idleTimeoutMs: 7000 }),
    '{"batch":{"maxItems":null}}': ({ batch }) =>
      expect(batch).to.include({ maxItems: 50, idleTimeoutMs: 7000 }),
    '{"batch":null}': ({ batch }) => expect(batch).to.include({ maxItems: 50, idleTimeoutMs: 5000 }),
    '{"delivery":{"headers":{"x-old":null,"x-new":"1"}}}': ({ delivery }) =>
      expect(delivery.headers).to.deep.equal({ 'x-new': '1', 'x-kept': '2' }),
    '{"delivery":{"signing":null}}': ({ delivery }) => expect(delivery).not.to.have.property('signing'),
    '{"delivery":{"signing":{"secret":"n3xt"}}}': ({ delivery }) =>
      expect(delivery.signing).to.deep.include({ secret: 'n3xt', header: 'x-signature' }),
    '{"enabled":false}': ({ enabled }) => expect(enabled).to.equal(false),
  }

  it('are all tried here', () => {
    const taken = rows.filter(([, effect]) => !effect.startsWith('Refused: '))
    expect(taken.map(([change]) => change)).to.deep.equal(Object.keys(made))
    expect(rows.length).to.be.above(taken.length)
  })

  for (const [change, effect] of rows) {
    it(`have their effect: ${change}`, async () => {
      const channel = await on.channel({
        batch: { maxItems: 7, idleTimeoutMs: 7000 },
        delivery: {
          headers: { 'x-old': '1', 'x-kept': '2' },
          signing: { secret: 's3cret', header: 'x-signature' },
        },
      })
      const before = await channel.read()
      const answer = await on.api.request('PATCH', `/v1/admin/buffers/${channel.bufferId}`, change)
      const [, refusal] = /^Refused: (.+?)\. Nothing changes\.$/.exec(effect) ?? []
      if (refusal === undefined) {
        expect(answer.status, answer.text).to.equal(200)
        made[change]!(await channel.read())
      } else {
        expect(answer.status).to.equal(400)
        expect(answer.json()).to.deep.equal({ error: refusal })
        expect(await channel.read()).to.deep.equal(before)
      }
    })
  }

  it('do not reach the ids of a buffer', async () => {
    const channel = await on.channel()
    for (const name of ['bufferId', 'projectId', 'customerId']) {
      const { status } = await on.api.request('PATCH', `/v1/admin/buffers/${channel.bufferId}`, {
        [name]: 'other',
      })
      expect(status, name).to.equal(400)
    }
  })
})
