import { expect } from 'chai'
import { describe, it } from 'mocha'
import { applyBufferPatch, parseBufferClone, parseBufferCreate } from '../../internal/domain/buffer.ts'
import type { Parsed } from '../../internal/domain/parsed.ts'
import { creation, creationWith, storedBuffer } from './sample-buffer.ts'

function problems(outcome: Parsed<unknown>): string[] {
  return outcome.ok ? [] : outcome.error.split('; ')
}

describe('what is wrong with a buffer configuration', () => {
  it('is told all at once, each by its path and with what is allowed', () => {
    const bad = {
      ...creation({ dlqPauseThreshold: 11, enabled: 'yes', colour: 'red' }),
      batch: { maxItems: 0, maxBytes: 1.5, idleTimeoutMs: 99, size: 1 },
      throughput: { maxAttempts: 6, backoff: { multiplier: 0.5, initialMs: null } },
      groupKey: { mode: 'xpath' },
      delivery: { method: 'GET', signing: {}, headers: { 'X-A': 1 } },
    }
    expect(problems(parseBufferCreate(bad))).to.have.members([
      'colour is not a known field',
      'enabled must be a boolean',
      'batch.size is not a known field',
      'batch.maxItems must be an integer from 1 to 10000',
      'batch.maxBytes must be an integer from 1 to 16777216',
      'batch.idleTimeoutMs must be an integer from 100 to 604800000',
      'groupKey.mode must be one of: jsonpath, header',
      'delivery.url is required',
      'delivery.method must be one of: POST, PUT',
      'delivery.headers.X-A must be a string',
      'delivery.signing.secret is required',
      'throughput.maxAttempts must be an integer from 1 to 5',
      'throughput.backoff.initialMs must be an integer from 0 to 86400000',
      'throughput.backoff.multiplier must be a number from 1 to 100',
      'dlqPauseThreshold must be an integer from 1 to 10',
    ])
  })

  it('holds every rule beyond the schema', () => {
    const bad = {
      ...creation({ groupKey: { mode: 'header' }, sourceVerification: { enabled: true } }),
      delivery: {
        url: 'https://user@receiver.example/',
        headers: { Host: 'x', 'X-A': 'ä\u0100', 'x y': 'z' },
        idempotencyHeader: 'Content-Length',
      },
      throughput: { backoff: { initialMs: 2, maxMs: 1 } },
    }
    expect(problems(parseBufferCreate(bad))).to.have.members([
      'groupKey.fallbackHeader is required in header mode',
      'delivery.url must not contain credentials',
      'throughput.backoff.initialMs must be <= throughput.backoff.maxMs',
      'sourceVerification.signingSecret is required when sourceVerification.enabled is true',
      'delivery.idempotencyHeader is a reserved header name',
      'delivery.headers.Host is a reserved header name',
      'delivery.headers.X-A must be printable Latin-1 characters',
      'delivery.headers.x y is not a valid header name',
    ])
  })

  it('is told once a field, whatever else is wrong with it', () => {
    const [only, ...others] = problems(parseBufferCreate(creationWith('bufferId', '')))
    expect(only).to.match(/^bufferId must have 1 to 128 characters$/)
    expect(others).to.deep.equal([])
  })

  it('names read-only, unknown and wrong fields of a patch together', () => {
    const patch = { bufferId: 'other', batch: { maxItem: null, maxItems: 0 }, colour: null, name: null }
    expect(problems(applyBufferPatch(storedBuffer(), patch))).to.have.members([
      'bufferId cannot be changed',
      'batch.maxItem is not a known field',
      'colour is not a known field',
      'batch.maxItems must be an integer from 1 to 10000',
      'name is required',
    ])
  })

  it('names every field of a clone that is none', () => {
    expect(problems(parseBufferClone(storedBuffer(), { name: 'n', a: 1, b: 2 }))).to.deep.equal([
      'a is not a known field',
      'b is not a known field',
    ])
  })

  it('names every secret that is a placeholder of nothing', () => {
    const bad = {
      ...creationWith('delivery.signing', { secret: '[redacted]' }),
      sourceVerification: { signingSecret: '[redacted]' },
    }
    expect(problems(parseBufferCreate(bad))).to.deep.equal([
      'delivery.signing.secret is [redacted], but none is stored',
      'sourceVerification.signingSecret is [redacted], but none is stored',
    ])
  })

  it('stays short for a body of strangers', () => {
    const strangers = Object.fromEntries(
      Array.from({ length: 1000 }, (_, n) => [`x${n}${'y'.repeat(500)}`, n]),
    )
    const told = problems(parseBufferCreate(creation(strangers)))
    expect(told).to.have.length(21)
    expect(told.at(-1)).to.equal('and 980 more')
    expect(Math.max(...told.map((text) => text.length))).to.be.below(230)
  })

  it('carries no text of the validator', () => {
    const raw = /must NOT|must match|must be <=|must be >=|additional|instancePath/
    for (const [path, value] of [
      ['batch.maxItems', 10_001],
      ['batch.maxItems', -1],
      ['delivery.headers', Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`x-${n}`, 'v']))],
      ['delivery.url', 'x'.repeat(3000)],
      ['name', 'x'.repeat(257)],
      ['groupKey.path', '$'],
      ['analytics.sampleDeliveryLogs', 2],
    ] as const) {
      const told = problems(parseBufferCreate(creationWith(path, value)))
      expect(told, path).to.have.length(1)
      expect(told[0], path)
        .to.match(new RegExp(`^${path.replaceAll('.', '\\.')} `))
        .and.not.match(raw)
    }
  })
})
