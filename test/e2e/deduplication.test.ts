/**
 * One message id, one item (docs/reference/buffers.md, "Deduplication"): found, free of charge, while it is buffered.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Accepted, Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { freshPayer } from '../support/shared-installation.ts'
import { type Channel, harness, NEVER_DUE } from './harness.ts'

describe('a message id', function () {
  this.timeout(120_000)
  const on = harness()
  let payer: string | undefined

  it('that arrives 100 times at once is one item and one charge, and 99 are told so', async function () {
    // A sender that the owner keeps waiting for a second is not told: the pause of a busy machine may come to that.
    this.retries(1)
    payer ??= await freshPayer(1_000)
    const { api, channel } = await paying(payer)
    const { credits } = await api.credits()
    const sent = await Promise.all(
      Array.from({ length: 100 }, (_, n) => channel.send({ group: 'a', messageId: 'same', n })),
    )
    await untilBalance(api, credits - 1)
    const originals = sent.filter(({ duplicate }) => duplicate === undefined)
    expect(originals).to.have.length(1)
    expect(sent.filter(({ duplicate }) => duplicate === true)).to.have.length(99)
    expect(new Set(sent.map(({ itemId }) => itemId))).to.deep.equal(new Set([originals[0]!.itemId]))
    expect(new Set(sent.map(({ messageId }) => messageId))).to.deep.equal(new Set(['same']))
    await flush(channel)
    const [batch] = await channel.untilBatches(1)
    expect(batch!.items.map(({ messageId }) => messageId)).to.deep.equal(['same'])
    expect(batch!.items[0]!.payload.n).to.equal(sent.indexOf(originals[0]!))
  })

  it('is accepted again once its item is delivered', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const first = await channel.send({ group: 'a', messageId: 'same' })
    const again = await channel.send({ group: 'a', messageId: 'same' })
    expect(again).to.deep.equal({ ...first, duplicate: true })
    await flush(channel)
    await channel.untilBatches(1)
    // The destination has the batch a moment before its end is in the journal.
    const fresh = await eventually(async () => {
      const answer = await channel.send({ group: 'a', messageId: 'same' })
      return answer.duplicate === undefined && answer
    })
    expect(fresh.itemId).not.to.equal(first.itemId)
    const batches = await channel.untilBatches(2)
    expect(batches.map(({ items }) => items.map(({ messageId }) => messageId))).to.deep.equal([
      ['same'],
      ['same'],
    ])
  })

  it('is still known while its batch is retried', async () => {
    const channel = await on.channel({
      batch: { ...NEVER_DUE, maxItems: 1 },
      throughput: { maxAttempts: 5, backoff: { initialMs: 2_000, maxMs: 2_000 } },
    })
    channel.answer({ status: 500 })
    const first = await channel.send({ group: 'a', messageId: 'same' })
    await channel.untilRequests(1)
    expect(await channel.send({ group: 'a', messageId: 'same' })).to.deep.equal({ ...first, duplicate: true })
    channel.answer({})
    await channel.untilEvents('delivery', 2)
  })

  it('in another group or another buffer is another', async () => {
    const [one, other] = [await on.channel({ batch: NEVER_DUE }), await on.channel({ batch: NEVER_DUE })]
    const sent: Accepted[] = []
    for (const channel of [one, other])
      for (const group of ['a', 'b']) sent.push(await channel.send({ group, messageId: 'same' }))
    expect(sent.map(({ duplicate }) => duplicate)).to.deep.equal(Array(4).fill(undefined))
    expect(new Set(sent.map(({ itemId }) => itemId)).size).to.equal(4)
  })

  it('may come in the header, and the body goes before it', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const header = { 'X-Idempotency-Key': 'h1' }
    const first = await channel.send({ group: 'a' }, header)
    expect(first.messageId).to.equal('h1')
    expect(await channel.send({ group: 'a', other: 'body' }, header)).to.deep.equal({
      ...first,
      duplicate: true,
    })
    expect(await channel.send({ group: 'a', messageId: 'h1' })).to.deep.equal({ ...first, duplicate: true })
    expect(await channel.send({ group: 'a', messageId: 'b1' }, header)).not.to.have.property('duplicate')
  })

  it('in UTF-8 is the same in a header and in a body, and so is a group key', async () => {
    const groupKey = { mode: 'jsonpath', path: '$.group', fallbackHeader: 'X-Customer' } as const
    const channel = await on.channel({ groupKey, batch: { ...NEVER_DUE, maxItems: 2 } })
    const asBytes = (text: string) => Buffer.from(text).toString('latin1')
    await channel.send({ group: 'Zoë', messageId: 'größe' })
    const headers = { 'X-Customer': asBytes('Zoë'), 'X-Idempotency-Key': asBytes('größe') }
    expect(await channel.send({ n: 2 }, headers)).to.include({ duplicate: true, messageId: 'größe' })
    await channel.send({ n: 3 }, { 'X-Customer': asBytes('Zoë') })
    const [{ svc, items } = expect.fail()] = await channel.untilBatches(1)
    expect([svc.groupKey, items.length, items[0]!.messageId]).to.deep.equal(['Zoë', 2, 'größe'])
  })

  it('may be a number, which counts as its text', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const first = await channel.send('{"group":"a","messageId":12345678901234567890}')
    expect(first.messageId).to.equal('12345678901234567890')
    const again = await channel.send('{"group":"a","messageId":"12345678901234567890"}')
    expect(again).to.deep.equal({ ...first, duplicate: true })
    expect(await channel.send('{"group":"a","messageId":12345678901234567891}')).not.to.have.property(
      'duplicate',
    )
  })

  it('is what makes a duplicate: the same body without one is stored twice', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 2 } })
    const [first, second] = await channel.sendAll([{ group: 'a' }, { group: 'a' }])
    expect(first!.messageId).not.to.equal(second!.messageId)
    expect((await channel.untilBatches(1))[0]!.items).to.have.length(2)
  })

  it('is found without a credit left', async () => {
    const { api, channel } = await paying(await freshPayer(1))
    const first = await channel.send({ group: 'a', messageId: 'same' })
    const refused = await channel.ingest({ group: 'a', messageId: 'another' })
    expect(refused.status).to.equal(429)
    expect(await channel.send({ group: 'a', messageId: 'same' })).to.deep.equal({ ...first, duplicate: true })
    expect((await api.credits()).credits).to.equal(0)
  })

  async function paying(customerId: string): Promise<{ api: Api; channel: Channel }> {
    const api = on.installation.api(customerId)
    const projectId = await api.createProject()
    return { api, channel: await on.channel({ batch: NEVER_DUE }, { api, projectId }) }
  }
})

/** Everything that is buffered is due. */
async function flush(channel: Channel): Promise<void> {
  await channel.patch({ batch: { maxItems: 1 } })
}

/** Duplicates are credited back with the next statement. */
async function untilBalance(api: Api, credits: number): Promise<void> {
  await eventually(async () => expect((await api.credits()).credits).to.equal(credits))
}
