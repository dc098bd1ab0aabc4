/** Which records of a batch's end wait for a commit to share. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { SealedBatch } from '../../../internal/shard/batches/delivery-scheduler.ts'
import { Settlement, type SettlementOptions } from '../../../internal/shard/batches/settlement.ts'
import type { LiveItem } from '../../../internal/shard/held/live.ts'

const sealed = {
  group: { id: 'g', buffer: { uid: randomUUID(), record: { buffer: { bufferId: 'b' } } } },
  batch: { version: 7, attempt: 1, items: [{ at: 1 }] },
  sealedAt: 2,
  last: null,
} as unknown as SealedBatch

/** What was written to the journal, by the way it was. */
function settlement() {
  const written: string[] = []
  const options = {
    journal: {
      write: ({ type }: { type: string }) => written.push(`${type} now`),
      writeSoon: ({ type }: { type: string }) => written.push(`${type} soon`),
    },
    clock: { now: () => 3 },
    deadLetterWriter: { write: async () => ({ outcome: 'stored', dlqId: 'd', paused: false }) },
    fence: { shard: 0 },
    telemetry: { dead: () => {} },
    ended: () => false,
  }
  return { written, settlement: new Settlement(options as unknown as SettlementOptions) }
}

describe('items that are discarded', () => {
  it('go 5,000 a commit, one commit after the other', () => {
    const written: number[] = []
    let committed = () => {}
    const options = {
      journal: {
        write({ positions }: { positions: unknown[] }, then: () => void) {
          written.push(positions.length)
          committed = then
        },
      },
      duplicates: { remove: () => forgotten++ },
      live: { remove: () => {} },
      fence: { shard: 0 },
      telemetry: { discarded: () => {} },
    }
    let forgotten = 0
    const items = Array.from({ length: 12_000 }, () => ({}) as LiveItem)
    new Settlement(options as unknown as SettlementOptions).discardItems(sealed.group, items)
    for (const all of [5_000, 10_000, 12_000]) {
      expect(written.reduce((sum, count) => sum + count)).to.equal(all)
      committed()
      expect(forgotten).to.equal(all)
    }
    expect(written).to.deep.equal([5_000, 5_000, 2_000])
  })
})

describe('the end of a batch', () => {
  it('by a 2xx shares a later commit, for nobody waits for it', () => {
    const { written, settlement: of } = settlement()
    of.acknowledge(sealed)
    expect(written).to.deep.equal(['done soon'])
  })

  it('as a dead letter is committed at once, for its tombstone waits for that', async () => {
    const { written, settlement: of } = settlement()
    await of.deadLetter(sealed, 'max_retries_exceeded')
    expect(written).to.deep.equal(['dead now'])
  })
})
