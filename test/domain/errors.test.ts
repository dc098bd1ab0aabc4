import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  type ErrorEntry,
  type ErrorKey,
  errors,
  insufficientCredits,
  invalid,
  roleMissing,
  ServiceError,
} from '../../internal/domain/errors.ts'

const entries = Object.entries(errors) as [ErrorKey, ErrorEntry][]

/** Statuses of refusals in general, and the three of request bodies (docs/reference/errors.md, "Errors"). */
const specified = [400, 401, 403, 404, 409, 429, 500, 502, 503]
const added = [408, 413, 415]

describe('the error registry', () => {
  it('uses the documented statuses, all of them and no others', () => {
    expect([...new Set(entries.map(([, entry]) => entry.status))]).to.have.members([...specified, ...added])
  })

  it('has the documented codes with their statuses, and no others', () => {
    const codes = entries.flatMap(([, { code, status }]) => (code === undefined ? [] : [`${code} ${status}`]))
    const documented = [
      ['payload_unavailable', 409],
      ['retry_in_progress', 409],
      ['delivery_failed', 502],
      ['unsupported_currency', 400],
      ['subscription_required', 403],
      ['subscription_exists', 409],
      ['account_suspended', 403],
      ['secret_unreadable', 503],
      ['email_not_verified', 403],
      ['rate_limited', 429],
      ['limit_reached', 409],
    ]
    expect([...new Set(codes)]).to.have.members(documented.map((pair) => pair.join(' ')))
  })

  const texts: [key: ErrorKey, status: number, text: string][] = [
    ['groupKeyMissing', 400, 'Could not extract group key from request'],
    ['bufferDisabled', 400, 'Buffer is disabled'],
    ['bufferNotInProject', 400, 'Buffer does not belong to this project'],
    ['signatureMissing', 401, 'Missing signature header'],
    ['signatureInvalid', 401, 'Invalid signature'],
    ['signatureStale', 401, 'Time stamp of the signature is too far from now'],
    ['ingestKeyInvalid', 401, 'Unauthorized'],
    ['ingestKeyMissing', 401, 'This buffer takes only webhooks with an API key in X-API-Key'],
    ['ingestKeyForeign', 403, 'API key does not have access to this buffer'],
    ['bufferNotFound', 404, 'Buffer not found'],
    ['keyInvalid', 401, 'Invalid or revoked API key'],
  ]
  for (const [key, status, text] of texts) {
    it(`says "${text}" with ${status}`, () => {
      const error = new ServiceError(key)
      expect(error.status).to.equal(status)
      expect(error.body).to.deep.equal({ error: text })
    })
  }

  it('has a text for every error', () => {
    for (const [key, entry] of entries) expect(entry.error, key).to.match(/^\S.*\S$/)
  })

  it('answers a page only for an ingest body that is not JSON', () => {
    expect(entries.filter(([, entry]) => entry.html).map(([key]) => key)).to.deep.equal(['ingestBodyNotJson'])
  })

  it('says when to come back where that helps', () => {
    for (const key of [
      ...(['storageUnavailable', 'bufferOverShare', 'databaseUnavailable'] as const),
      ...(['bodiesBusy', 'connectionsBusy'] as const),
    ]) {
      expect(errors[key].status, key).to.equal(503)
      expect(errors[key].retryAfter, key).to.be.above(0)
    }
  })
})

describe('an answer that refuses', () => {
  it('carries the code and what the endpoint adds', () => {
    expect(new ServiceError('deliveryFailed', { dlqId: 'd', statusCode: 0 }).body).to.deep.equal({
      error: errors.deliveryFailed.error,
      code: 'delivery_failed',
      dlqId: 'd',
      statusCode: 0,
    })
  })

  it('names the field when the input was bad', () => {
    const error = invalid('batch.maxItems must be >= 1')
    expect([error.status, error.body]).to.deep.equal([400, { error: 'batch.maxItems must be >= 1' }])
    expect(error.message).to.equal('batch.maxItems must be >= 1')
  })

  it('names the roles when one is missing', () => {
    const error = roleMissing('writeProjects')
    expect(error.status).to.equal(403)
    expect(error.body).to.deep.equal({
      error: 'Forbidden',
      message: 'Requires one of the following roles: admin, owner',
    })
  })

  it('names balance and need when credits are short', () => {
    const error = insufficientCredits(3, 5)
    expect(error.status).to.equal(429)
    expect(error.body).to.include({ credits: 3, required: 5 })
    expect(error.body.message).to.be.a('string').that.includes('5')
  })

  it('keeps its cause', () => {
    const cause = new Error('refused')
    expect(new ServiceError('databaseUnavailable', {}, { cause }).cause).to.equal(cause)
  })
})
