import { expect } from 'chai'
import { describe, it } from 'mocha'

import { readBatch } from './batch-body.ts'
import { type Delivery, type History, hashOf } from './history.ts'
import { batchItem, broken, delivery, GROUP, keyOf, otherDelivery, SENT, sentItem } from './sample-history.ts'

/** A body with one item of this text, as the service builds it. */
function bodyOf(payload: string): Buffer {
  const svc = { customerId: 'c', projectId: 'p', bufferId: 'b', groupKey: 'g', groupHash: GROUP, segment: 0 }
  const window = { firstItemAt: SENT + 11, lastActivityAt: SENT + 11, itemsCount: 1 }
  const head = `"svc":${JSON.stringify(svc)},"window":${JSON.stringify(window)}`
  return Buffer.from(
    `{${head},"items":[{"messageId":"id-1","receivedAt":${SENT + 11},"payload":${payload}}]}`,
  )
}

/** The one item was sent as `sent`, and came as `came`. */
function came(sent: string, arrived: string): string[] {
  return broken((history) => {
    const payloadBytes = Buffer.byteLength(sent)
    history.sent.splice(0, 4, sentItem(1, { payloadHash: hashOf(sent), payloadBytes }))
    const batch = readBatch(keyOf(10), bodyOf(arrived))
    history.deliveries.splice(0, 2, { ...delivery(10, [1]), ...batch })
    history.credits = null
  })
}

describe('the checker of contents', () => {
  const first = (change: object) => (history: History) =>
    Object.assign(history.deliveries[0]!.items[0]!, change)
  const batch = (change: Partial<Delivery>) => (history: History) =>
    Object.assign(history.deliveries[0]!, change)

  it('catches what nobody sent, other bytes, another group, a refused request, and an item twice', () => {
    expect(broken(first({ n: 99 }))).to.include('invented')
    expect(broken(first({ payloadHash: 'other' }))).to.include('invented')
    expect(broken(first({ messageId: 'other' }))).to.include('invented')
    expect(broken(batch({ groupKey: 'h' }))).to.include('invented')
    const refused = { at: SENT + 15, status: 429 }
    expect(broken((history) => Object.assign(history.sent[0]!, { answer: refused }))).to.include('invented')
    const twice = (history: History) =>
      Object.assign(history.deliveries[0]!, {
        items: history.deliveries[0]!.items.toSpliced(1, 0, ...history.deliveries[0]!.items),
      })
    expect(broken(twice)).to.include('invented')
  })

  it('catches a payload that was parsed and printed anew', () => {
    for (const [sent, printed] of [
      ['{"n":1,"price":1.0}', '{"n":1,"price":1}'],
      ['{"n":1,"b":1,"a":2}', '{"a":2,"b":1,"n":1}'],
      ['{"n":1,"x":1,"x":2}', '{"n":1,"x":2}'],
      ['{"n":1,"x":"\\u0061"}', '{"n":1,"x":"a"}'],
      ['{"n":1,"x":12345678901234567890}', '{"n":1,"x":12345678901234567000}'],
      [' { "n" : 1 }\n', '{"n":1}'],
    ] as const) {
      expect(came(sent, sent), sent).to.deep.equal([])
      expect(came(sent, printed), printed).to.deep.equal(['invented'])
    }
  })

  it('takes the payload alone, whatever it looks like itself', () => {
    for (const payload of [
      '{"n":1,"payload":[{"items":"]}\\"}"}]}',
      '{"n":1,"x":"\\\\"}',
      '{"n":1,"x":[],"y":{}}',
    ])
      expect(came(payload, payload), payload).to.deep.equal([])
  })

  it('catches a body that has another member, or has one not', () => {
    const strange = (change: (text: string) => string) =>
      readBatch(keyOf(1), Buffer.from(change(bodyOf('{"n":1}').toString()))).strange
    expect(strange((text) => text)).to.deep.equal([])
    expect(strange((text) => text.replace('"segment":0', '"segment":0,"shard":1'))).to.have.length(1)
    expect(strange((text) => text.replace(`"receivedAt":${SENT + 11},`, ''))).to.deep.equal([
      'item: messageId, payload',
    ])
    expect(broken(batch({ strange: ['svc: shard'] }))).to.deep.equal(['untrue'])
  })

  it('catches a body that names another customer, project, group or number of items', () => {
    const { origin, window } = delivery(10, [1, 2])
    for (const change of [
      { customerId: 'x' },
      { projectId: 'x' },
      { groupHash: 'B'.repeat(22) },
      { segment: -1 },
      { segment: 0.5 },
    ])
      expect(broken(batch({ origin: { ...origin, ...change } })), JSON.stringify(change)).to.include('untrue')
    for (const change of [{ itemsCount: 3 }, { firstItemAt: SENT }, { lastActivityAt: SENT + 999 }])
      expect(broken(batch({ window: { ...window, ...change } })), JSON.stringify(change)).to.deep.equal([
        'untrue',
      ])
  })

  it('catches an item that was received before it was sent, or behind its answer', () => {
    const receivedAt = (at: number) => (history: History) => {
      const items = [batchItem(1, { receivedAt: at }), batchItem(2, { receivedAt: at })]
      history.deliveries[0] = delivery(10, items)
    }
    expect(broken(receivedAt(SENT + 20))).to.deep.equal([])
    expect(broken(receivedAt(SENT - 3_600_000))).to.deep.equal(['untrue'])
    expect(broken(receivedAt(SENT + 3_600_000))).to.deep.equal(['untrue'])
  })

  it('catches two groups of one hash, and two hashes of one group', () => {
    const other = (change: Partial<Delivery>) => (history: History) => {
      history.sent[2] = sentItem(3, { groupKey: 'h' })
      history.sent[3] = sentItem(4, { groupKey: 'h' })
      history.deliveries[1] = otherDelivery(20, [3, 4], change)
    }
    expect(broken(other({}))).to.deep.equal([])
    const { key, origin } = delivery(20, [3])
    expect(broken(other({ key, origin }))).to.deep.equal(['untrue'])
    const sameGroup = (history: History) => {
      history.deliveries[1] = { ...otherDelivery(20, [3, 4]), groupKey: 'g' }
    }
    expect(broken(sameGroup)).to.deep.equal(['untrue'])
  })

  it('catches a segment that falls to another one than 0', () => {
    const segments = (one: number, two: number) => (history: History) => {
      for (const [index, segment] of [one, two].entries()) {
        const at = history.deliveries[index]!
        history.deliveries[index] = { ...at, origin: { ...at.origin, segment } }
      }
    }
    expect(broken(segments(1, 2))).to.deep.equal([])
    expect(broken(segments(2, 0))).to.deep.equal([])
    expect(broken(segments(2, 1))).to.deep.equal(['untrue'])
  })

  it('catches a batch of a buffer that the run never made', () => {
    expect(broken((history) => history.changes.pop())).to.include('untrue')
  })
})
