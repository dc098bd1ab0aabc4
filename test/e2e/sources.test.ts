/** Webhooks of providers, as they come in (docs/reference/buffers.md, "Source verification", "Deduplication"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { SignatureScheme } from '../../internal/domain/signatures/schemes.ts'
import type { Answer } from '../support/api.ts'
import { onceKnown } from '../support/fronts.ts'
import { OTHER_SECRET, type Signing, SOURCE_SECRET, signedAs } from '../support/source-signatures.ts'
import { type ChannelFields, harness, NEVER_DUE } from './harness.ts'

interface Provider {
  readonly messageId: { path?: string; header?: string }
  readonly body: string
  readonly headers?: Record<string, string>
  /** What the provider signs its resend with. */
  readonly again?: Signing
  readonly id: string
}

const providers: Readonly<Record<Exclude<SignatureScheme, 'hex'>, Provider>> = {
  github: {
    messageId: { header: 'X-GitHub-Delivery' },
    body: '{"group":"a","action":"opened"}',
    headers: { 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' },
    id: '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  },
  shopify: {
    messageId: { header: 'X-Shopify-Webhook-Id' },
    body: '{"group":"a","id":820982911946154508}',
    headers: { 'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043' },
    id: 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
  },
  stripe: {
    messageId: { path: '$.id' },
    body: '{"group":"a","id":"evt_1NG8Du2eZvKYlo2CUI79vXWy","object":"event"}',
    again: { later: 7 },
    id: 'evt_1NG8Du2eZvKYlo2CUI79vXWy',
  },
  slack: {
    messageId: { path: '$.event_id' },
    body: '{"group":"a","type":"event_callback","event_id":"Ev08MFMKH6"}',
    again: { later: 7 },
    id: 'Ev08MFMKH6',
  },
  'standard-webhooks': {
    messageId: { header: 'webhook-id' },
    body: '{"group":"a","type":"contact.created"}',
    again: { later: 7 },
    id: 'msg_1',
  },
}

describe('webhooks of a provider', function () {
  this.timeout(120_000)
  const on = harness()

  for (const [name, { messageId, body, headers, again, id }] of Object.entries(providers)) {
    const scheme = name as SignatureScheme

    it(`are verified, and their resends are duplicates: ${scheme}`, async () => {
      const sourceVerification = { enabled: true, scheme, signingSecret: SOURCE_SECRET }
      const fields = { batch: NEVER_DUE, messageId, sourceVerification }
      const channel = await on.channel(fields as ChannelFields)
      const first = await channel.send(body, { ...headers, ...signedAs(scheme, body) })
      expect(first).to.include({ messageId: id }).and.not.have.property('duplicate')
      const resent = await channel.send(body, { ...headers, ...signedAs(scheme, body, again) })
      expect(resent).to.deep.equal({ ...first, duplicate: true })
      const forged = await channel.ingest(body, {
        ...headers,
        ...signedAs(scheme, body, { secret: OTHER_SECRET }),
      })
      expectRefused(forged, 'Invalid signature')
    })
  }

  it('are refused when their time stamp is too far from now', async () => {
    const sourceVerification = { enabled: true, scheme: 'stripe', signingSecret: SOURCE_SECRET }
    const channel = await on.channel({ batch: NEVER_DUE, sourceVerification } as ChannelFields)
    const stale = await channel.ingest('{"group":"a"}', signedAs('stripe', '{"group":"a"}', { later: -900 }))
    expectRefused(stale, 'Time stamp of the signature is too far from now')
  })

  it('are refused without a key once the buffer requires one', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    await channel.send({ group: 'a' })
    await channel.patch({ requireApiKey: true })
    await onceKnown(async () =>
      expectRefused(
        await channel.ingest({ group: 'a' }),
        'This buffer takes only webhooks with an API key in X-API-Key',
      ),
    )
    await channel.send({ group: 'a' }, { 'x-api-key': on.api.key! })
  })
})

function expectRefused(answer: Answer, error: string): void {
  expect([answer.status, answer.json()]).to.deep.equal([401, { error }])
}
