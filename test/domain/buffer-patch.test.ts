import { expect } from 'chai'
import { describe, it } from 'mocha'
import { applyBufferPatch, configOf, parseBufferClone } from '../../internal/domain/buffer.ts'
import { redactBuffer } from '../../internal/domain/buffer-secrets.ts'
import type { Buffer } from '../../internal/domain/model.ts'
import { storedBuffer } from './sample-buffer.ts'

function changed(patch: unknown, stored: Buffer = storedBuffer()) {
  const applied = applyBufferPatch(stored, patch)
  if (!applied.ok) throw new Error(applied.error)
  return applied.value.config
}

function errorOf(patch: unknown): string {
  const applied = applyBufferPatch(storedBuffer(), patch)
  if (applied.ok) throw new Error(`accepted ${JSON.stringify(patch)}`)
  return applied.error
}

/** The stored configuration with one edit, as the whole result is compared: nothing else may move. */
function expected(edit: (buffer: Buffer) => void) {
  const buffer = storedBuffer()
  edit(buffer)
  return configOf(buffer)
}

describe('PATCH of a buffer', () => {
  it('changes nothing when empty', () => {
    expect(changed({})).to.deep.equal(configOf(storedBuffer()))
  })

  it('keeps a path that would be refused now, and takes no other such path', () => {
    const stored = storedBuffer()
    stored.groupKey.path = '$.k '
    expect(changed({ name: 'New' }, stored)).to.deep.include({ name: 'New', groupKey: stored.groupKey })
    expect(changed({ groupKey: { path: '$.k ' } }, stored)).to.deep.equal(configOf(stored))
    expect(parseBufferClone(stored, undefined)).to.include({ ok: true })
    for (const path of ['$.j ', '$.a\\.b']) {
      const applied = applyBufferPatch(stored, { groupKey: { path } })
      expect(applied)
        .to.include({ ok: false })
        .and.has.property('error')
        .that.includes('groupKey.path is not valid')
    }
  })

  it('keeps a credential header that is stored, and takes no other one', () => {
    const stored = storedBuffer()
    stored.groupKey = { mode: 'header', fallbackHeader: 'X-API-Key' }
    expect(changed({ enabled: false }, stored).groupKey.fallbackHeader).to.equal('X-API-Key')
    const applied = applyBufferPatch(stored, { groupKey: { fallbackHeader: 'Cookie' } })
    expect(applied.ok).to.equal(false)
    expect(errorOf({ messageId: { header: 'Authorization' } })).to.equal(
      'messageId.header must not name a header that carries credentials, or the signature',
    )
  })

  it('takes no signature header that the group key is read from', () => {
    const stored = storedBuffer()
    stored.groupKey = { mode: 'header', fallbackHeader: 'x-sig' }
    const applied = applyBufferPatch(stored, {
      sourceVerification: { enabled: false, signatureHeader: 'X-Sig' },
    })
    expect(applied.ok).to.equal(false)
  })

  it('leaves the stored buffer as it was', () => {
    const stored = storedBuffer()
    changed({ batch: null, delivery: { headers: { 'X-Tenant': 'new' } } }, stored)
    expect(stored).to.deep.equal(storedBuffer())
  })

  const merges: [what: string, patch: unknown, edit: (buffer: Buffer) => void][] = [
    [
      'a member of the top',
      { name: 'New' },
      (b) => {
        b.name = 'New'
      },
    ],
    [
      'a nested member',
      { batch: { maxBytes: 5 } },
      (b) => {
        b.batch.maxBytes = 5
      },
    ],
    [
      'a header beside the others',
      { delivery: { headers: { 'X-New': '1' } } },
      (b) => void Object.assign(b.delivery.headers ?? {}, { 'X-New': '1' }),
    ],
    [
      'the signature header beside the secret',
      { delivery: { signing: { header: 'X-Sig' } } },
      (b) => void Object.assign(b.delivery.signing ?? {}, { header: 'X-Sig' }),
    ],
    [
      'the switch of verification beside its secret',
      { sourceVerification: { enabled: false } },
      (b) => void Object.assign(b.sourceVerification ?? {}, { enabled: false }),
    ],
    [
      'a delay two levels down',
      { throughput: { backoff: { maxMs: 2000 } } },
      (b) => {
        b.throughput.backoff.maxMs = 2000
      },
    ],
    [
      'the fields that only a stored buffer shows',
      {
        analytics: { sampleDeliveryLogs: 1 },
        throughput: { minDelayBetweenFlushMs: 50, maxConcurrencyPerGroup: 2 },
        overflow: { policy: 'flush_early_then_continue' },
      },
      (b) => {
        b.analytics.sampleDeliveryLogs = 1
        b.throughput.minDelayBetweenFlushMs = 50
        b.throughput.maxConcurrencyPerGroup = 2
      },
    ],
  ]
  for (const [what, patch, edit] of merges) {
    it(`merges ${what}`, () => expect(changed(patch)).to.deep.equal(expected(edit)))
  }

  const removals: [what: string, patch: unknown, edit: (buffer: Buffer) => void][] = [
    [
      'the fallback header',
      { groupKey: { fallbackHeader: null } },
      (b) => void delete b.groupKey.fallbackHeader,
    ],
    ['all headers', { delivery: { headers: null } }, (b) => void delete b.delivery.headers],
    [
      'one header',
      { delivery: { headers: { Authorization: null } } },
      (b) => void delete b.delivery.headers?.Authorization,
    ],
    ['signing', { delivery: { signing: null } }, (b) => void delete b.delivery.signing],
    ['what is not there', { delivery: { headers: { 'X-None': null } } }, () => {}],
  ]
  for (const [what, patch, edit] of removals) {
    it(`removes ${what} by null`, () => expect(changed(patch)).to.deep.equal(expected(edit)))
  }

  it('restores a default by null', () => {
    expect(changed({ batch: { maxItems: null } }).batch.maxItems).to.equal(50)
    expect(changed({ batch: null }).batch).to.deep.equal({
      maxItems: 50,
      maxBytes: 262144,
      idleTimeoutMs: 5000,
      maxWaitFromFirstMs: 15000,
    })
    expect(changed({ sourceVerification: null }).sourceVerification).to.deep.equal({
      enabled: false,
      signatureHeader: 'x-webhook-signature',
      algorithm: 'hmac-sha256',
    })
  })

  const refused: [patch: unknown, field: string][] = [
    [{ name: null }, 'name'],
    [{ groupKey: null }, 'groupKey'],
    [{ delivery: null }, 'delivery'],
    [{ delivery: { url: null } }, 'delivery.url'],
    [{ groupKey: { mode: null } }, 'groupKey.mode'],
    [{ delivery: { signing: { secret: null } } }, 'delivery.signing.secret'],
    [{ sourceVerification: { signingSecret: null } }, 'sourceVerification.signingSecret'],
    [{ groupKey: { path: null, fallbackHeader: null } }, 'groupKey.path'],
    [{ groupKey: { mode: 'header', fallbackHeader: null } }, 'groupKey.fallbackHeader'],
    [{ batch: { maxItems: 0 } }, 'batch.maxItems'],
    [{ batch: 5 }, 'batch'],
    [{ batch: [] }, 'batch'],
    [{ throughput: { backoff: { maxMs: 999 } } }, 'throughput.backoff.initialMs'],
    [{ delivery: { idempotencyHeader: 'X-Tenant' } }, 'delivery.headers.X-Tenant'],
    [{ delivery: { signing: { header: 'authorization' } } }, 'delivery.headers.Authorization'],
    [{ delivery: { headers: { authorization: 'x' } } }, 'delivery.headers.authorization'],
    [{ delivery: { headers: 'x' } }, 'delivery.headers'],
    [{ bach: null }, 'bach'],
    [{ batch: { maxItem: null } }, 'batch.maxItem'],
    [{ extra: 1 }, 'extra'],
    [JSON.parse('{"__proto__": {"enabled": false}}'), '__proto__'],
    [JSON.parse('{"batch": {"__proto__": null}}'), 'batch.__proto__'],
    [JSON.parse('{"delivery": {"headers": {"__proto__": "x"}}}'), 'delivery.headers.__proto__'],
  ]
  for (const [patch, field] of refused) {
    it(`refuses ${JSON.stringify(patch)}`, () => {
      expect(errorOf(patch)).to.match(new RegExp(`^${field.replaceAll('.', '\\.')} `))
    })
  }

  for (const patch of [undefined, null, 1, 'x', []]) {
    it(`refuses ${JSON.stringify(patch)} as a patch`, () => {
      expect(errorOf(patch)).to.equal('body must be a JSON object')
    })
  }

  it('survives a patch of a million levels', () => {
    const deep = JSON.parse(`${'{"batch":'.repeat(1_000_000)}1${'}'.repeat(1_000_000)}`)
    expect(errorOf(deep)).to.equal('batch.batch is not a known field')
    expect(errorOf({ delivery: { headers: { 'X-Deep': deep } } })).to.equal(
      'delivery.headers.X-Deep must be a string',
    )
  })

  const readOnly = ['bufferId', 'projectId', 'customerId', 'consecutiveDlqCount', 'createdAt', 'updatedAt']
  for (const field of readOnly) {
    it(`takes ${field} only unchanged`, () => {
      const value = storedBuffer()[field as keyof Buffer]
      expect(changed({ [field]: value, name: 'New' }).name).to.equal('New')
      for (const bad of [typeof value === 'string' ? 'other' : 77, null]) {
        expect(errorOf({ [field]: bad, name: 'New' })).to.equal(`${field} cannot be changed`)
      }
    })
  }

  it('takes a whole buffer as it was answered', () => {
    expect(changed(storedBuffer())).to.deep.equal(configOf(storedBuffer()))
  })

  it('tells when it re-enables a buffer', () => {
    const reenabled = (enabled: boolean, patch: unknown) => {
      const applied = applyBufferPatch({ ...storedBuffer(), enabled }, patch)
      return applied.ok && applied.value.reenabled
    }
    expect(reenabled(false, { enabled: true })).to.equal(true)
    expect(reenabled(false, { enabled: null })).to.equal(true)
    expect(reenabled(false, { name: 'x' })).to.equal(false)
    expect(reenabled(true, { enabled: true })).to.equal(false)
    expect(reenabled(true, { enabled: false })).to.equal(false)
  })

  it('asks the guard about a new destination only', () => {
    const blocked = () => 'it is a private address'
    const url = { delivery: { url: 'http://10.0.0.1/' } }
    expect(applyBufferPatch(storedBuffer(), url, blocked)).to.deep.equal({
      ok: false,
      error: 'delivery.url is not allowed: it is a private address',
    })
    expect(applyBufferPatch(storedBuffer(), { enabled: false }, blocked).ok).to.equal(true)
  })
})

describe('secrets of a buffer', () => {
  it('are hidden from a viewer, all of them and nothing else', () => {
    const shown = redactBuffer(storedBuffer())
    for (const secret of ['Bearer one', '"two"', 'three', 'four']) {
      expect(JSON.stringify(shown)).not.to.include(secret)
    }
    const wanted = storedBuffer()
    wanted.delivery.headers = { Authorization: '[redacted]', 'X-Tenant': '[redacted]' }
    Object.assign(wanted.delivery.signing ?? {}, { secret: '[redacted]' })
    Object.assign(wanted.sourceVerification ?? {}, { signingSecret: '[redacted]' })
    expect(shown).to.deep.equal(wanted)
  })

  it('do not appear where none is stored', () => {
    const { headers: _, signing: __, ...delivery } = storedBuffer().delivery
    const bare: Buffer = { ...storedBuffer(), delivery }
    delete bare.sourceVerification
    expect(redactBuffer(bare)).to.deep.equal(bare)
  })

  it('are kept when the placeholder comes back', () => {
    expect(changed(redactBuffer(storedBuffer()))).to.deep.equal(configOf(storedBuffer()))
  })

  it('are kept beside one that changes', () => {
    const patch = { delivery: { headers: { Authorization: '[redacted]', 'X-Tenant': 'new' } } }
    expect(changed(patch).delivery.headers).to.deep.equal({ Authorization: 'Bearer one', 'X-Tenant': 'new' })
  })

  it('never become the placeholder', () => {
    expect(errorOf({ delivery: { headers: { 'X-New': '[redacted]' } } })).to.include('delivery.headers.X-New')
    expect(errorOf({ delivery: { headers: { toString: '[redacted]' } } })).to.include('toString')
    const bare = storedBuffer()
    delete bare.delivery.signing
    const applied = applyBufferPatch(bare, { delivery: { signing: { secret: '[redacted]' } } })
    expect(applied.ok || applied.error).to.include('delivery.signing.secret')
  })
})

describe('clone of a buffer', () => {
  it('copies the whole configuration under another name', () => {
    const copy = configOf({ ...storedBuffer(), name: 'Orders (Copy)' })
    for (const body of [undefined, {}]) {
      expect(parseBufferClone(storedBuffer(), body)).to.deep.equal({ ok: true, value: copy })
    }
    const named = parseBufferClone(storedBuffer(), { name: 'Mine' })
    expect(named.ok && named.value.name).to.equal('Mine')
  })

  it('shares nothing with its original', () => {
    const stored = storedBuffer()
    const clone = parseBufferClone(stored, {})
    if (clone.ok) clone.value.batch.maxItems = 1
    expect(stored).to.deep.equal(storedBuffer())
  })

  it('refuses a bad body', () => {
    const bodies = [[], 'x', { name: '' }, { name: 5 }, { name: null }, { bufferId: 'x' }]
    for (const body of [...bodies, { name: 'a\u0000b' }, { name: 'a\ud800' }, { name: 'n'.repeat(257) }]) {
      expect(parseBufferClone(storedBuffer(), body).ok, JSON.stringify(body)).to.equal(false)
    }
  })

  it('cuts the end of a name that would grow too long, between characters', () => {
    const nameOf = (name: string) => {
      const clone = parseBufferClone({ ...storedBuffer(), name }, {})
      return clone.ok && clone.value.name
    }
    expect(nameOf('n'.repeat(249))).to.equal(`${'n'.repeat(249)} (Copy)`)
    expect(nameOf('n'.repeat(250))).to.equal(`${'n'.repeat(249)} (Copy)`)
    expect(nameOf('\u{1f600}'.repeat(256))).to.equal(`${'\u{1f600}'.repeat(249)} (Copy)`)
  })
})
