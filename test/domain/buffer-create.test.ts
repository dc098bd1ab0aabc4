import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseBufferCreate } from '../../internal/domain/buffer.ts'
import { configOf, creation, creationWith, errorOf } from './sample-buffer.ts'

describe('creation of a buffer', () => {
  it('fills in every documented default', () => {
    const parsed = parseBufferCreate(creation())
    expect(parsed).to.deep.equal({
      ok: true,
      value: {
        bufferId: 'orders',
        projectId: 'shop',
        config: {
          name: 'Orders',
          enabled: true,
          groupKey: { mode: 'jsonpath', path: '$.data.customer' },
          batch: { maxItems: 50, maxBytes: 262144, idleTimeoutMs: 5000, maxWaitFromFirstMs: 15000 },
          overflow: { maxGroupItems: 2000, maxGroupBytes: 5242880, policy: 'flush_early_then_continue' },
          delivery: {
            url: 'https://receiver.example/hook',
            method: 'POST',
            idempotencyHeader: 'x-idempotency-key',
          },
          throughput: {
            maxAttempts: 3,
            backoff: { initialMs: 1000, maxMs: 60000, multiplier: 2 },
            minDelayBetweenFlushMs: 0,
            maxConcurrencyPerGroup: 1,
          },
          dlqPauseThreshold: 3,
          sourceVerification: {
            enabled: false,
            signatureHeader: 'x-webhook-signature',
            algorithm: 'hmac-sha256',
          },
          analytics: { sampleDeliveryLogs: 0.05 },
        },
      },
    })
  })

  it('fills in defaults beside what a nested object gives', () => {
    const config = configOf(creation({ batch: { maxItems: 9 }, throughput: { backoff: { maxMs: 5000 } } }))
    expect(config.batch).to.deep.equal({
      maxItems: 9,
      maxBytes: 262144,
      idleTimeoutMs: 5000,
      maxWaitFromFirstMs: 15000,
    })
    expect(config.throughput.backoff).to.deep.equal({ initialMs: 1000, maxMs: 5000, multiplier: 2 })
  })

  it('gives signing its type and header', () => {
    expect(configOf(creationWith('delivery.signing', { secret: 's' })).delivery.signing).to.deep.equal({
      type: 'hmac-sha256',
      secret: 's',
      header: 'x-svc-signature',
    })
  })

  it('keeps a customerId that the caller gave', () => {
    const parsed = parseBufferCreate(creation({ customerId: 'acme' }))
    expect(parsed.ok && parsed.value.customerId).to.equal('acme')
  })

  it('leaves the body as it was', () => {
    const body = creation({ batch: {} })
    const before = JSON.stringify(body)
    parseBufferCreate(body)
    expect(JSON.stringify(body)).to.equal(before)
  })

  it('shares no default between two buffers', () => {
    configOf(creation()).batch.maxItems = 1
    expect(configOf(creation()).batch.maxItems).to.equal(50)
  })

  const integers: [field: string, least: number, most: number][] = [
    ['batch.maxItems', 1, 10_000],
    ['batch.maxBytes', 1, 16_777_216],
    ['batch.idleTimeoutMs', 100, 604_800_000],
    ['batch.maxWaitFromFirstMs', 100, 604_800_000],
    ['overflow.maxGroupItems', 1, 1_000_000],
    ['overflow.maxGroupBytes', 1, 1_073_741_824],
    ['throughput.maxAttempts', 1, 5],
    ['throughput.backoff.initialMs', 0, 60_000],
    ['throughput.backoff.maxMs', 1000, 86_400_000],
    ['throughput.minDelayBetweenFlushMs', 0, 86_400_000],
    ['throughput.maxConcurrencyPerGroup', 1, 100],
    ['dlqPauseThreshold', 1, 10],
  ]
  for (const [field, least, most] of integers) {
    it(`bounds ${field} to ${least}..${most}`, () => {
      for (const good of [least, most]) expect(() => configOf(creationWith(field, good))).not.to.throw()
      for (const bad of [least - 1, most + 1, -1, least + 0.5, '5', true, null, [], {}]) {
        expect(errorOf(creationWith(field, bad)), JSON.stringify(bad)).to.include(field)
      }
    })
  }

  const numbers: [field: string, least: number, most: number][] = [
    ['throughput.backoff.multiplier', 1, 100],
    ['analytics.sampleDeliveryLogs', 0, 1],
  ]
  for (const [field, least, most] of numbers) {
    it(`bounds ${field} to ${least}..${most}, fractions included`, () => {
      for (const good of [least, least + 0.5, most])
        expect(() => configOf(creationWith(field, good))).not.to.throw()
      for (const bad of [least - 0.01, most + 0.01, '1', null, Number.POSITIVE_INFINITY]) {
        expect(errorOf(creationWith(field, bad)), String(bad)).to.include(field)
      }
    })
  }

  for (const field of ['enabled', 'sourceVerification.enabled']) {
    it(`takes only a boolean for ${field}`, () => {
      expect(() => configOf(creationWith(field, false))).not.to.throw()
      for (const bad of ['true', 1, null, {}]) {
        expect(errorOf(creationWith(field, bad))).to.equal(`${field} must be a boolean`)
      }
    })
  }

  const choices: [field: string, good: string[]][] = [
    ['overflow.policy', ['flush_early_then_continue']],
    ['delivery.method', ['POST', 'PUT']],
    ['sourceVerification.algorithm', ['hmac-sha256', 'hmac-sha1']],
  ]
  for (const [field, values] of choices) {
    it(`takes only ${values.join(' and ')} for ${field}`, () => {
      for (const value of values) expect(() => configOf(creationWith(field, value))).not.to.throw()
      for (const bad of ['', 'GET', values[0]?.toUpperCase().repeat(2), null, 1]) {
        expect(errorOf(creationWith(field, bad))).to.include(field)
      }
    })
  }

  for (const field of ['bufferId', 'projectId', 'name', 'groupKey', 'delivery']) {
    it(`demands ${field}`, () => {
      const { [field]: _, ...body } = creation()
      expect(errorOf(body)).to.equal(`${field} is required`)
    })
  }

  it('demands members of nested objects by their path', () => {
    expect(errorOf(creation({ groupKey: {} }))).to.equal('groupKey.mode is required')
    expect(errorOf(creation({ delivery: {} }))).to.equal('delivery.url is required')
    expect(errorOf(creationWith('delivery.signing', {}))).to.equal('delivery.signing.secret is required')
  })

  for (const body of [undefined, null, 1, 'x', true, []]) {
    it(`refuses ${JSON.stringify(body)} as a body`, () => {
      expect(errorOf(body)).to.equal('body must be an object')
    })
  }

  const unknown = [
    'extra',
    'consecutiveDlqCount',
    'createdAt',
    'groupKey.extra',
    'batch.extra',
    'overflow.extra',
    'delivery.extra',
    'delivery.signing.extra',
    'throughput.extra',
    'throughput.backoff.extra',
    'sourceVerification.extra',
    'analytics.extra',
    'constructor',
  ]
  for (const field of unknown) {
    it(`refuses the unknown field ${field}`, () => {
      const body = creationWith(field, 1)
      const { signing } = body.delivery as { signing?: { secret?: string } }
      if (signing) signing.secret = 's'
      expect(errorOf(body)).to.equal(`${field} is not a known field`)
    })
  }

  it('refuses __proto__ as a field wherever it stands', () => {
    const text = JSON.stringify(creation({ batch: {} }))
    const outer = JSON.parse(text.replace('{', '{"__proto__":{"enabled":false},'))
    const inner = JSON.parse(text.replace('"batch":{', '"batch":{"__proto__":{"maxItems":1}'))
    expect(errorOf(outer)).to.equal('__proto__ is not a known field')
    expect(errorOf(inner)).to.equal('batch.__proto__ is not a known field')
    expect({}).not.to.have.property('enabled')
  })

  it('does not send a name of 10 kB back', () => {
    expect(errorOf(creation({ ['x'.repeat(10_000)]: 1 })).length).to.be.below(300)
  })

  it('refuses a value of a million levels without exhausting the stack', () => {
    const deep = JSON.parse(`${'[{"a":'.repeat(1)}${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}]`)
    expect(errorOf(creation({ batch: deep }))).to.equal('batch must be an object')
  })

  it('bounds the name and refuses controls in it', () => {
    expect(configOf(creation({ name: 'n'.repeat(256) })).name).to.have.length(256)
    expect(configOf(creation({ name: 'Bestellungen für Zoë 🚀' })).name).to.include('🚀')
    for (const bad of ['', 'n'.repeat(257), 'a\nb', 'a\u0000b', '\ud800', 5]) {
      expect(errorOf(creation({ name: bad })), JSON.stringify(bad)).to.match(/^name /)
    }
  })

  describe('identifiers', () => {
    for (const field of ['bufferId', 'projectId', 'customerId']) {
      it(`bounds ${field}`, () => {
        for (const good of ['a', 'A-z_0.9', '...', 'x'.repeat(128)]) {
          expect(parseBufferCreate(creation({ [field]: good })).ok, good).to.equal(true)
        }
        for (const bad of [
          '',
          '.',
          '..',
          'a b',
          'a/b',
          'a>',
          'a*',
          '%2f',
          'é',
          'а',
          'x'.repeat(129),
          7,
          null,
        ]) {
          expect(errorOf(creation({ [field]: bad })), String(bad)).to.match(new RegExp(`^${field} `))
        }
      })
    }
  })

  describe('group key', () => {
    const good = ['$.a', '$.a.b', '$.constructor.name', '$.__proto__', '$.items.0.id', '$.@type', '$.größe']
    for (const path of good) {
      it(`takes the path ${path}`, () => {
        expect(configOf(creation({ groupKey: { mode: 'jsonpath', path } })).groupKey.path).to.equal(path)
      })
    }

    const bad = [
      '',
      '$',
      '$.',
      '$..a',
      '$.a.',
      '$.a..b',
      '$.a[0]',
      "$['a']",
      '$.*',
      'a.b',
      '.a',
      '$a',
      ' $.a',
      5,
    ]
    for (const path of [...bad, `$.${'a'.repeat(511)}`, '$.\ud800', '$.a\u0000']) {
      it(`refuses the path ${JSON.stringify(path).slice(0, 30)}`, () => {
        expect(errorOf(creation({ groupKey: { mode: 'jsonpath', path } }))).to.match(/^groupKey\.path /)
      })
    }

    it('takes a path of 512 characters', () => {
      const path = `$.${'a'.repeat(510)}`
      expect(parseBufferCreate(creation({ groupKey: { mode: 'jsonpath', path } })).ok).to.equal(true)
    })

    it('needs a source in each mode', () => {
      expect(errorOf(creation({ groupKey: { mode: 'jsonpath' } }))).to.include('groupKey.path')
      expect(errorOf(creation({ groupKey: { mode: 'header' } }))).to.include('groupKey.fallbackHeader')
      expect(errorOf(creation({ groupKey: { mode: 'header', path: '$.a' } }))).to.include('fallbackHeader')
      for (const mode of ['jsonpath', 'header']) {
        expect(() => configOf(creation({ groupKey: { mode, fallbackHeader: 'X-Key' } }))).not.to.throw()
      }
    })

    it('refuses another mode', () => {
      for (const mode of ['', 'JSONPATH', 'jmespath', null, 1]) {
        expect(errorOf(creation({ groupKey: { mode, path: '$.a' } }))).to.include('groupKey.mode')
      }
    })
  })

  it('wants at most maxMs as the first delay', () => {
    const backoff = (initialMs: number, maxMs: number) =>
      creationWith('throughput.backoff', { initialMs, maxMs })
    expect(parseBufferCreate(backoff(5, 5)).ok).to.equal(true)
    expect(errorOf(backoff(6, 5))).to.include('throughput.backoff.initialMs')
    expect(errorOf(creationWith('throughput.backoff', { initialMs: 60_001 }))).to.include('initialMs')
  })

  describe('secrets', () => {
    for (const field of ['delivery.signing.secret', 'sourceVerification.signingSecret']) {
      it(`bounds ${field} and refuses the placeholder`, () => {
        for (const good of ['s', 's'.repeat(1024), 'with\nline']) {
          expect(parseBufferCreate(creationWith(field, good)).ok).to.equal(true)
        }
        for (const bad of ['', 's'.repeat(1025), '[redacted]', 'a\u0000b', '\udfff', null, 5]) {
          expect(errorOf(creationWith(field, bad)), JSON.stringify(bad)).to.include(field)
        }
      })
    }

    it('knows one type of signing', () => {
      expect(errorOf(creationWith('delivery.signing', { type: 'hmac-sha1', secret: 's' }))).to.include(
        'delivery.signing.type',
      )
    })

    it('verifies no source without a secret', () => {
      expect(errorOf(creation({ sourceVerification: { enabled: true } }))).to.include(
        'sourceVerification.signingSecret',
      )
      expect(parseBufferCreate(creation({ sourceVerification: { enabled: false } })).ok).to.equal(true)
      const both = { enabled: true, signingSecret: 's' }
      expect(parseBufferCreate(creation({ sourceVerification: both })).ok).to.equal(true)
    })
  })
})
