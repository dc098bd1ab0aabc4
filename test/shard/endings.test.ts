/** Which records of a batch's end wait for a commit to share. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { SealedBatch } from '../../internal/shard/courier.ts'
import { Endings, type EndingsOptions } from '../../internal/shard/endings.ts'

const sealed = {
  group: { id: 'g', book: { uid: randomUUID(), record: { buffer: { bufferId: 'b' } } } },
  batch: { version: 7, attempt: 1, items: [{ at: 1 }] },
  sealedAt: 2,
  last: null,
} as unknown as SealedBatch

/** What was written to the journal, by the way it was. */
function endings() {
  const written: string[] = []
  const options = {
    journal: {
      write: ({ type }: { type: string }) => written.push(`${type} now`),
      writeSoon: ({ type }: { type: string }) => written.push(`${type} soon`),
    },
    clock: { now: () => 3 },
    burial: { bury: async () => ({ paused: false }) },
    fence: { shard: 0 },
    telemetry: { dead: () => {} },
  }
  return { written, endings: new Endings(options as unknown as EndingsOptions) }
}

describe('the end of a batch', () => {
  it('by a 2xx shares a later commit, for nobody waits for it', () => {
    const { written, endings: of } = endings()
    of.acknowledge(sealed, () => {})
    expect(written).to.deep.equal(['done soon'])
  })

  it('as a dead letter is committed at once, for its tombstone waits for that', async () => {
    const { written, endings: of } = endings()
    await of.bury(
      sealed,
      'max_retries_exceeded',
      () => false,
      () => {},
    )
    expect(written).to.deep.equal(['dead now'])
  })
})
