/** States of all buffers in one answer, and waiting for a change of them, over HTTP and a real Postgres. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { type BufferStates, MOST_COUNTED, WAITERS } from '../../internal/buffers/states.ts'
import { eventually } from '../support/eventually.ts'
import { type Admin, adminOf, bufferBody, call } from './caller.ts'
import { RawClient } from './raw-client.ts'
import { startService, type TestService } from './service.ts'

const STATES = '/v1/admin/buffer-states'

describe('the states of buffers', function () {
  this.timeout(120_000)
  let service: TestService
  let customerId: string
  let key: string
  let admin: Admin
  let other: Admin

  before(async () => {
    service = await startService({ feed: true })
  })
  after(() => service.stop())

  beforeEach(async () => {
    customerId = `acme-${randomUUID()}`
    key = await service.ownerKey(customerId)
    admin = adminOf(service.url, key)
    other = adminOf(service.url, await service.ownerKey(`globex-${randomUUID()}`))
    for (const each of [admin, other])
      await each.post('/v1/admin/projects', { projectId: randomUUID(), name: 'x' })
  })

  async function projectOf(caller: Admin, owner = customerId): Promise<string> {
    const { json } = await caller.get(`/v1/admin/projects?customerId=${owner}`)
    return (json as { projectId: string }[])[0]!.projectId
  }

  async function makeBuffer(more: object = {}): Promise<string> {
    const bufferId = randomUUID()
    const made = await admin.post(
      '/v1/admin/buffers',
      bufferBody(bufferId, await projectOf(admin), { ...more }),
    )
    expect(made.status, made.text).to.equal(201)
    return bufferId
  }

  async function states(query = '', caller = admin): Promise<BufferStates> {
    const { status, json, text } = await caller.get(`${STATES}${query}`)
    expect(status, text).to.equal(200)
    return json as BufferStates
  }

  /** As the shards do when a batch dies. */
  async function pause(bufferId: string): Promise<void> {
    await service.db`
      UPDATE buffers SET enabled = false, consecutive_dlq_count = 3, paused_at = now(),
        paused_reason = 'consecutive_dead_letters'
      WHERE buffer_id = ${bufferId}`
  }

  it('tell how each buffer of the caller stands, and of nobody else', async () => {
    const [first, second] = [await makeBuffer(), await makeBuffer({ enabled: false })].sort()
    const { buffers } = await states()
    expect(buffers.map(({ bufferId }) => bufferId)).to.deep.equal([first, second])
    const { updatedAt, projectId, enabled, ...counts } = buffers[0]!
    expect(counts).to.deep.equal({ bufferId: first, consecutiveDlqCount: 0, deadLetters: 0 })
    expect(Date.now() - updatedAt).to.be.within(-5_000, 60_000)
    expect(projectId).to.equal(await projectOf(admin))
    expect(buffers.map((each) => each.enabled)).to.have.members([true, false])
    expect(enabled).to.be.a('boolean')
    expect((await states('', other)).buffers).to.deep.equal([])
  })

  it('count the dead letters of a buffer, without another tag', async () => {
    const bufferId = await makeBuffer()
    const { tag } = await states()
    for (const createdAt of [3, 7, 5])
      await service.db`
        INSERT INTO dlq_items (dlq_id, customer_id, project_id, buffer_id, buffer_uid, group_id, version, group_key,
          reason, last_error, last_status_code, attempt, item_count, message_ids, first_payload_preview, segment,
          first_item_at, last_activity_at, payload_bytes, body_sha256, created_at)
        SELECT ${randomUUID()}, customer_id, project_id, buffer_id, uid, ${randomUUID()}, 1, '"k"',
          'max_retries_exceeded', 'HTTP 500', 500, 2, 1, '["m"]', '"1"', 0, 1, 2, 1, sha256(''), ${createdAt}
        FROM buffers WHERE buffer_id = ${bufferId}`
    const counted = await states()
    expect(counted.buffers[0]).to.include({ deadLetters: 3, lastDeadLetterAt: 7 })
    expect(counted.tag).to.equal(tag)
    await service.db`
      INSERT INTO dlq_items SELECT (jsonb_populate_record(i, jsonb_build_object(
        'dlq_id', gen_random_uuid(), 'group_id', gen_random_uuid()))).*
      FROM dlq_items i, generate_series(1, ${MOST_COUNTED}) WHERE buffer_id = ${bufferId}`
    expect((await states()).buffers[0]).to.include({ deadLetters: MOST_COUNTED })
  })

  it('have a tag that changes with what a buffer is, and not otherwise', async () => {
    const bufferId = await makeBuffer()
    const tags = [(await states()).tag]
    expect((await states()).tag).to.equal(tags[0])
    const changes = [
      () => admin.patch(`/v1/admin/buffers/${bufferId}`, { name: 'other' }),
      () => pause(bufferId),
      () => admin.patch(`/v1/admin/buffers/${bufferId}`, { enabled: true }),
      () => makeBuffer(),
      () => admin.delete(`/v1/admin/buffers/${bufferId}`),
    ]
    for (const change of changes) {
      await change()
      tags.push((await states()).tag)
    }
    expect(new Set(tags).size).to.equal(tags.length)
  })

  it('answer who waits as soon as the service pauses a buffer, whoever made the change', async () => {
    const bufferId = await makeBuffer()
    const { tag } = await states()
    const waited = states(`?after=${tag}&waitSeconds=50`)
    await pause(bufferId)
    const told = await waited
    expect(told.tag).to.not.equal(tag)
    expect(told.buffers[0]).to.include({ enabled: false, pausedReason: 'consecutive_dead_letters' })
    expect(told.buffers[0]!.pausedAt).to.be.a('number')
  })

  it('keep nobody waiting who names another tag, or no time', async () => {
    const { tag } = await states()
    expect((await states(`?after=former&waitSeconds=50`)).tag).to.equal(tag)
    expect((await states(`?after=${tag}`)).tag).to.equal(tag)
    expect((await states(`?waitSeconds=50`)).tag).to.equal(tag)
  })

  it('answer after the time when nothing changes, and a change of somebody else is none', async () => {
    const { tag } = await states()
    const began = performance.now()
    const waited = states(`?after=${tag}&waitSeconds=1`)
    await other.post('/v1/admin/projects', { projectId: randomUUID(), name: 'x' })
    expect((await waited).tag).to.equal(tag)
    expect(performance.now() - began).to.be.at.least(990)
  })

  it('answer at once whoever asks beyond those that may wait, until one of them stops waiting', async () => {
    const { tag } = await states()
    const gone = new AbortController()
    const query = `?after=${tag}&waitSeconds=50`
    const init = { headers: { 'x-api-key': key }, signal: gone.signal }
    let answered = 0
    const asked = Array.from({ length: WAITERS.customer + 1 }, async () => {
      const answer = await call(`${service.url}${STATES}${query}`, init)
      answered++
      return answer
    })
    const ended = Promise.allSettled(asked)
    const { status, json, text } = await Promise.race(asked)
    expect(status, text).to.equal(200)
    expect(json).to.include({ tag })
    expect(answered).to.equal(1)
    gone.abort()
    await ended
    await eventually(async () => {
      const began = performance.now()
      await states(`?after=${tag}&waitSeconds=1`)
      return performance.now() - began >= 990
    })
  })

  it('keep no request waiting that comes behind the end of its connection', async function () {
    // Before the time that the requests name.
    this.timeout(40_000)
    const { tag } = await states()
    const client = await RawClient.open(service.port)
    // A key that the process does not know yet: the end comes while it is looked up.
    const made = await admin.post('/v1/admin/api-keys', { name: 'new', role: 'viewer' })
    const { secret } = made.json as { secret: string }
    client.send(
      `GET ${STATES}?after=${tag}&waitSeconds=50 HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${secret}\r\n\r\n`,
    )
    client.socket.end()
    expect(await client.answer()).to.include({ status: 200 })
    client.close()
  })

  it('are not told to whom the key was taken while it waited', async () => {
    const made = await admin.post('/v1/admin/api-keys', { name: 'short', role: 'viewer' })
    const { keyId, secret } = made.json as { keyId: string; secret: string }
    const { tag } = await states()
    const waited = adminOf(service.url, secret).get(`${STATES}?after=${tag}&waitSeconds=2`)
    expect((await admin.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
    expect((await waited).status).to.equal(401)
  })

  it('name the parameter that is wrong', async () => {
    for (const [query, name] of [
      ['?waitSeconds=51', 'waitSeconds'],
      ['?waitSeconds=-1', 'waitSeconds'],
      ['?waitSeconds=soon', 'waitSeconds'],
      ['?after=', 'after'],
      [`?after=${'x'.repeat(65)}`, 'after'],
      ['?wait=1', 'wait'],
    ]) {
      const { status, text } = await admin.get(`${STATES}${query}`)
      expect(status, query).to.equal(400)
      expect(text).to.include(name)
    }
  })

  it('answer who waits when the service stops', async () => {
    const own = await startService({ feed: true })
    const caller = adminOf(own.url, await own.ownerKey('acme'))
    const { json } = await caller.get(STATES)
    const { tag } = json as BufferStates
    const waited = caller.get(`${STATES}?after=${tag}&waitSeconds=50`)
    // The request is there once it waits.
    await eventually(async () => (await own.db`SELECT 1`).length === 1)
    await own.stop()
    expect((await waited).status).to.equal(200)
  })
})
