/** What a buffer may say of the signatures of its webhooks (docs/reference/buffers.md, "Source verification"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { applyBufferPatch, parseBufferClone } from '../../../internal/domain/buffer.ts'
import { redactBuffer, UNREADABLE } from '../../../internal/domain/buffer-secrets.ts'
import type { Buffer, SourceVerification } from '../../../internal/domain/model.ts'
import { signatureSchemes } from '../../../internal/domain/signatures/schemes.ts'
import { configOf, creation, errorOf, storedBuffer } from '../sample-buffer.ts'

const source = (member: object) => configOf(creation({ sourceVerification: member })).sourceVerification!

/** A stored buffer that verifies its senders in this way. */
function verifying(member: Partial<SourceVerification>): Buffer {
  const stored = storedBuffer()
  return { ...stored, sourceVerification: { ...stored.sourceVerification!, ...member } }
}

function patched(stored: Buffer, sourceVerification: object | null): SourceVerification {
  const change = applyBufferPatch(stored, { sourceVerification })
  if (!change.ok) throw new Error(change.error)
  return change.value.config.sourceVerification!
}

const own: Readonly<Record<string, string>> = {
  hex: 'x-webhook-signature',
  github: 'x-hub-signature-256',
  shopify: 'x-shopify-hmac-sha256',
  stripe: 'stripe-signature',
  slack: 'x-slack-signature',
  'standard-webhooks': 'webhook-signature',
}

describe('a buffer that says nothing of schemes, ids and keys', () => {
  it('is answered without any of their fields', () => {
    const config = configOf(creation())
    expect(config).not.to.have.any.keys('messageId', 'requireApiKey')
    expect(config.sourceVerification).to.deep.equal({
      enabled: false,
      signatureHeader: 'x-webhook-signature',
      algorithm: 'hmac-sha256',
    })
  })

  it('keeps whatever header it has, also one that a scheme has', () => {
    for (const signatureHeader of [...Object.values(own), 'X-Hub-Signature-256']) {
      expect(source({ signatureHeader })).to.include({ signatureHeader })
      const stored = verifying({ signatureHeader })
      expect(patched(stored, { enabled: false })).to.include({ signatureHeader })
    }
  })

  it('is so again once they are removed', () => {
    const stored: Buffer = {
      ...verifying({ scheme: 'stripe', previousSecret: 'old', toleranceSeconds: 9, signatureHeader: 'X-A' }),
      messageId: { path: '$.id', header: 'X-Id' },
      requireApiKey: true,
    }
    const change = applyBufferPatch(stored, {
      messageId: null,
      requireApiKey: null,
      sourceVerification: {
        scheme: null,
        previousSecret: null,
        toleranceSeconds: null,
        signatureHeader: null,
      },
    })
    const { customerId: _c, bufferId: _b, projectId: _p, ...plain } = storedBuffer()
    const { consecutiveDlqCount: _d, createdAt: _t, updatedAt: _u, ...config } = plain
    expect(change).to.deep.equal({ ok: true, value: { config, reenabled: false } })
  })
})

describe('the header of a scheme', () => {
  for (const scheme of signatureSchemes) {
    it(`is ${own[scheme]} of ${scheme}, unless the buffer names another`, () => {
      expect(source({ scheme })).to.include({ scheme, signatureHeader: own[scheme] })
      expect(source({ scheme, signatureHeader: 'x-webhook-signature' })).to.include({
        signatureHeader: own[scheme],
      })
      for (const signatureHeader of ['X-Webhook-Signature', 'X-WC-Webhook-Signature'])
        expect(source({ scheme, signatureHeader })).to.include({ signatureHeader })
    })

    it(`follows a change to ${scheme}, and is left alone where the buffer named it`, () => {
      const secret = { signingSecret: 'Zm91cg==' }
      for (const [before, signatureHeader] of Object.entries(own)) {
        const stored = verifying({ scheme: before as never, signatureHeader, ...secret })
        expect(patched(stored, { scheme }), before).to.include({ signatureHeader: own[scheme] })
        // Read, changed and written back as a whole.
        const whole = { ...stored.sourceVerification, scheme }
        expect(patched(stored, whole), before).to.include({ signatureHeader: own[scheme] })
      }
      const named = verifying({ scheme: 'github', signatureHeader: 'X-Named', ...secret })
      expect(patched(named, { scheme })).to.include({ signatureHeader: 'X-Named' })
      expect(patched(named, { scheme, signatureHeader: null })).to.include({ signatureHeader: own[scheme] })
    })
  }
})

describe('secrets of standard-webhooks', () => {
  const good = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'YQ==', 'YWI=']
  const bad = ['whsec_', 'hush!', 'YQ', 'YQ=', 'YWI=\n', ' YWI=', 'YW-_', 'whsk_YWI=', 'größe']
  const text = 'must be base64, with or without whsec_ in front, for the scheme standard-webhooks'

  for (const name of ['signingSecret', 'previousSecret']) {
    it(`are base64, which is told of ${name} without any of it`, () => {
      for (const secret of good)
        expect(source({ scheme: 'standard-webhooks', [name]: secret })).to.include({ [name]: secret })
      for (const secret of bad) {
        const body = creation({ sourceVerification: { scheme: 'standard-webhooks', [name]: secret } })
        expect(errorOf(body)).to.equal(`sourceVerification.${name} ${text}`)
        expect(source({ scheme: 'stripe', [name]: secret })).to.include({ [name]: secret })
      }
    })
  }

  it('are judged when the scheme changes, but not those that cannot be read', () => {
    const change = { sourceVerification: { scheme: 'standard-webhooks' } }
    const refused = applyBufferPatch(verifying({ signingSecret: 'no base64' }), change)
    expect(refused).to.deep.equal({ ok: false, error: `sourceVerification.signingSecret ${text}` })
    const lost = verifying({ signingSecret: UNREADABLE, previousSecret: UNREADABLE })
    expect(applyBufferPatch(lost, change).ok).to.equal(true)
  })
})

describe('the previous secret', () => {
  const stored = verifying({ previousSecret: 'three and a half' })

  it('is redacted, and kept when it is sent back so', () => {
    const seen = redactBuffer(stored).sourceVerification!
    expect(seen).to.include({ signingSecret: '[redacted]', previousSecret: '[redacted]' })
    expect(patched(stored, seen)).to.deep.equal(stored.sourceVerification)
  })

  it('cannot be made up by the placeholder', () => {
    expect(errorOf(creation({ sourceVerification: { previousSecret: '[redacted]' } }))).to.equal(
      'sourceVerification.previousSecret is [redacted], but none is stored',
    )
  })

  it('is cloned', () => {
    const clone = parseBufferClone(stored, undefined)
    expect(clone.ok && clone.value.sourceVerification).to.deep.equal(stored.sourceVerification)
  })

  it('does not stand in for the present one', () => {
    expect(errorOf(creation({ sourceVerification: { enabled: true, previousSecret: 's' } }))).to.include(
      'sourceVerification.signingSecret is required',
    )
  })
})

describe('the place of the message id', () => {
  it('is a path, a header, or both', () => {
    const places = [{ path: '$.id' }, { header: 'X-Id' }, { path: '$.a.0.id', header: 'X-Id' }]
    for (const messageId of places) expect(configOf(creation({ messageId }))).to.deep.include({ messageId })
    expect(errorOf(creation({ messageId: {} }))).to.equal('messageId.path or messageId.header is required')
    expect(errorOf(creation({ messageId: { path: '$.*' } }))).to.match(/^messageId\.path is not valid/)
    expect(errorOf(creation({ messageId: { header: 'a b' } }))).to.match(/^messageId\.header is not valid/)
    expect(errorOf(creation({ messageId: { field: 'id' } }))).to.equal('messageId.field is not a known field')
  })

  it('cannot lose its last member', () => {
    const stored = { ...storedBuffer(), messageId: { path: '$.id' } }
    expect(applyBufferPatch(stored, { messageId: { path: null } })).to.deep.equal({
      ok: false,
      error: 'messageId.path or messageId.header is required',
    })
  })
})
