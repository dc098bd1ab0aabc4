/** When `packages/client` sends again, and after which pause. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  isNamedWebhook,
  isRead,
  isRepeated,
  pauseOf,
  RETRIES,
  retryAfterOf,
} from '../../packages/client/src/retry.ts'

const INGEST = 'http://127.0.0.1/v1/ingest/shop/orders'
const request = (method: string, url = 'http://127.0.0.1/v1/admin/buffers', headers = {}) =>
  new Request(url, { method, headers })

describe('the pause before the next attempt', () => {
  it('doubles up to a limit, and lies between half of it and all of it', () => {
    const pauses = (random: number) =>
      [1, 2, 3, 4, 5, 6, 7, 60].map((n) => pauseOf(RETRIES, n, undefined, random))
    expect(pauses(1)).to.deep.equal([500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000])
    expect(pauses(0)).to.deep.equal([250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000])
  })

  it('is never shorter than the answer asks for', () => {
    expect(pauseOf(RETRIES, 1, 5_000, 0)).to.equal(5_000)
    expect(pauseOf(RETRIES, 1, 5_000, 1)).to.equal(6_250)
    expect(pauseOf(RETRIES, 9, 0, 1)).to.equal(0)
  })

  it('is none when the answer asks for more than the policy allows', () => {
    expect(pauseOf(RETRIES, 1, 120_000, 0)).to.equal(120_000)
    expect(pauseOf(RETRIES, 1, 120_001, 0)).to.equal(undefined)
  })
})

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  const pausedFor = (value: string) => retryAfterOf(new Headers({ 'retry-after': value }), now)

  it('is seconds, or a date', () => {
    expect(pausedFor('3')).to.equal(3_000)
    expect(pausedFor('0')).to.equal(0)
    expect(pausedFor('Thu, 01 Jan 2026 00:00:07 GMT')).to.equal(7_000)
    expect(pausedFor('Wed, 31 Dec 2025 23:00:00 GMT')).to.equal(0)
  })

  it('says nothing when it is neither', () => {
    for (const value of ['', 'soon', '-', '1.5.2x']) expect(pausedFor(value), value).to.equal(undefined)
    expect(retryAfterOf(new Headers(), now)).to.equal(undefined)
  })
})

describe('what is sent again', () => {
  it('reads, or is a webhook with an id', () => {
    expect(
      ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => isRead(request(method))),
    ).to.deep.equal(['GET', 'HEAD'])
    expect(isNamedWebhook(request('POST', INGEST, { 'X-Idempotency-Key': 'm1' }))).to.equal(true)
    expect(isNamedWebhook(request('POST', INGEST))).to.equal(false)
    const below = INGEST.replace('/v1', '/base/v1')
    expect(isNamedWebhook(request('POST', below, { 'X-Idempotency-Key': 'm1' }))).to.equal(true)
    expect(isNamedWebhook(request('POST', undefined, { 'X-Idempotency-Key': 'm1' }))).to.equal(false)
  })

  it('was answered with what may pass', () => {
    const statuses = [200, 202, 204, 400, 401, 403, 404, 408, 409, 413, 415, 429, 500, 502, 503, 504]
    const of = (each: Request) => statuses.filter((status) => isRepeated(each, status))
    expect(of(request('GET'))).to.deep.equal([408, 429, 500, 502, 503, 504])
    // 429 of a webhook: the account lacks credits.
    expect(of(request('POST', INGEST))).to.deep.equal([408, 500, 502, 503, 504])
  })
})
