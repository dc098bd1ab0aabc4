import { expect } from 'chai'
import { describe, it } from 'mocha'
import { applyBufferPatch } from '../../../internal/domain/buffer.ts'
import { bufferConfigSchema } from '../../../internal/domain/buffer-schema.ts'
import type { Buffer as StoredBuffer } from '../../../internal/domain/model.ts'
import type { DesiredBuffer } from '../../../operator/reconcile/desired-buffer.ts'
import { differenceOf } from '../../../operator/reconcile/difference.ts'
import { observed, resource, stored } from './fixtures.ts'

const wanted = (observed().desired as DesiredBuffer).config

/** Applies the change as the service does. */
function patched(buffer: StoredBuffer): StoredBuffer {
  const change = applyBufferPatch(buffer, differenceOf(wanted, buffer))
  if (!change.ok) throw new Error(change.error)
  const rest = Object.entries(buffer).filter(([name]) => !Object.hasOwn(bufferConfigSchema.properties!, name))
  return { ...(Object.fromEntries(rest) as unknown as StoredBuffer), ...change.value.config }
}

describe('the difference between what is wanted and what is stored', () => {
  it('is nothing for a buffer as desired', () => {
    expect(differenceOf(wanted, stored())).to.equal(undefined)
  })

  it('holds only fields that differ, each complete', () => {
    const change = differenceOf(wanted, stored(resource(), { name: 'edited', dlqPauseThreshold: 9 }))
    expect(change).to.deep.equal({ name: 'orders', dlqPauseThreshold: 3 })
  })

  const edits: Record<string, Partial<StoredBuffer>> = {
    'a member that was added': {
      groupKey: { mode: 'jsonpath', path: '$.customer', fallbackHeader: 'x-key' },
    },
    'a member that was removed': {
      delivery: { url: 'https://shop.example/hook', method: 'POST', idempotencyHeader: 'x-idempotency-key' },
    },
    'headers that were added': {
      delivery: { ...stored().delivery, headers: { 'x-a': '1', 'X-B': '2' } },
    },
    'a secret that was changed': {
      delivery: { ...stored().delivery, signing: { ...stored().delivery.signing!, secret: 'other' } },
    },
    'a secret that was added': {
      sourceVerification: { ...stored().sourceVerification!, enabled: true, signingSecret: 'added' },
    },
    'a scheme, a previous secret and a tolerance that were added': {
      sourceVerification: {
        ...stored().sourceVerification!,
        scheme: 'stripe',
        signatureHeader: 'stripe-signature',
        previousSecret: 'added',
        toleranceSeconds: 9,
      },
    },
    'places of the message id that were added': { messageId: { path: '$.id', header: 'x-id' } },
    'an API key that became required': { requireApiKey: true },
    'a value deep inside': {
      throughput: { ...stored().throughput, backoff: { initialMs: 5, maxMs: 6, multiplier: 7 } },
    },
  }
  for (const [title, edit] of Object.entries(edits)) {
    it(`takes back ${title}`, () => {
      const edited = stored(resource(), edit)
      expect(differenceOf(wanted, edited)).to.have.all.keys(Object.keys(edit))
      expect(differenceOf(wanted, patched(edited))).to.equal(undefined)
      expect(patched(edited)).to.deep.equal(stored())
    })
  }

  it('does not count what only a newer service knows', () => {
    const newer = { ...stored(), colour: 'red', batch: { ...stored().batch, compression: 'zstd' } }
    expect(differenceOf(wanted, newer as StoredBuffer)).to.equal(undefined)
    const changed = differenceOf(wanted, { ...newer, batch: { ...newer.batch, maxItems: 1 } } as StoredBuffer)
    expect(changed).to.deep.equal({ batch: wanted.batch })
  })

  it('counts `enabled` only where it is wanted', () => {
    const disabled = stored(resource(), { enabled: false })
    expect(differenceOf(wanted, disabled)).to.equal(undefined)
    expect(differenceOf({ ...wanted, enabled: true }, disabled)).to.deep.equal({ enabled: true })
  })
})
