import { expect } from 'chai'
import { describe, it } from 'mocha'
import { mapSecrets, UNREADABLE } from '../../internal/domain/buffer-secrets.ts'
import type { BufferConfig } from '../../internal/domain/model.ts'
import { shortSecrets } from '../../internal/domain/short-secrets.ts'
import { configOf, creation } from './sample-buffer.ts'

const LONG = '0123456789abcdef'
const SHORT = LONG.slice(1)

function withSecrets(signing: string, source: object): BufferConfig {
  const delivery = {
    url: 'https://receiver.example/hook',
    headers: { 'x-token': 'x' },
    signing: { secret: signing },
  }
  return configOf(creation({ delivery, sourceVerification: { enabled: true, ...source } }))
}

describe('short secrets of a buffer', () => {
  it('are keys of signatures below 16 bytes, and no headers', () => {
    expect(shortSecrets(withSecrets(LONG, { signingSecret: LONG, previousSecret: LONG }))).to.deep.equal([])
    expect(shortSecrets(withSecrets(SHORT, { signingSecret: SHORT, previousSecret: SHORT }))).to.deep.equal([
      'delivery.signing.secret',
      'sourceVerification.signingSecret',
      'sourceVerification.previousSecret',
    ])
  })

  it('are counted in bytes, those of standard-webhooks behind their base64', () => {
    expect(shortSecrets(withSecrets('é'.repeat(8), { signingSecret: LONG }))).to.deep.equal([])
    const standard = (bytes: number) => ({
      scheme: 'standard-webhooks',
      signingSecret: `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`,
    })
    expect(shortSecrets(withSecrets(LONG, standard(16)))).to.deep.equal([])
    expect(shortSecrets(withSecrets(LONG, standard(15)))).to.deep.equal(['sourceVerification.signingSecret'])
  })

  it('are told when they are new, and not when they cannot be read', () => {
    const stored = withSecrets(SHORT, { signingSecret: SHORT })
    expect(shortSecrets(stored, stored)).to.deep.equal([])
    const changed = withSecrets('another', { signingSecret: SHORT })
    expect(shortSecrets(changed, stored)).to.deep.equal(['delivery.signing.secret'])
    const unreadable = mapSecrets(stored, () => UNREADABLE)
    expect(shortSecrets(unreadable, unreadable)).to.deep.equal([])
  })
})
