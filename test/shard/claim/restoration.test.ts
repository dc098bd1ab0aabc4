/** How open batches of the last owner go on (docs/architecture/protocol.md, "Restored batches"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Restoration, type RestorationOptions } from '../../../internal/shard/claim/restoration.ts'
import type { LiveItem, OpenGroup } from '../../../internal/shard/held/live.ts'
import type { Position } from '../../../internal/shard/journal/records.ts'
import type { OpenBatch } from '../../../internal/shard/journal/state.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { settled as settledTurn } from '../../ingest/support.ts'
import { BOOT, groupId, seal } from '../journal-records.ts'

/** Batches of one item each. All but two have a group of their own: the first and the last one share it. */
function restoration(batches: number) {
  const clock = new ManualClock()
  const outstanding = Array.from({ length: batches }, (_, n): OpenBatch => {
    const record = seal(0, [{ seq: n + 1, index: 0 }]) as OpenBatch['seal']
    return { groupId: groupId(0), version: n + 1, seal: record, attempt: 1, nextAt: 0 }
  })
  const restored: number[] = []
  const resumed: OpenGroup[] = []
  const options = {
    clock,
    outstanding,
    live: { get: (position: Position) => position },
    batches: {
      restore: (_group: OpenGroup, { version }: { version: number }) => restored.push(version),
      resume: (group: OpenGroup) => resumed.push(group),
    },
    deadLetters: { known: async () => [] },
    fence: { shard: 0, epoch: 1 },
    raised: Promise.resolve(),
  }
  const subject = new Restoration(options as unknown as RestorationOptions)
  const shared = { id: BOOT, restoring: 0 } as OpenGroup
  for (const [n, batch] of outstanding.entries()) {
    const group = n % (batches - 1) === 0 ? shared : ({ restoring: 0 } as OpenGroup)
    subject.member(batch, { seq: n + 1, index: 0, group } as LiveItem)
  }
  const turn = async () => {
    clock.advance(0)
    await settledTurn()
  }
  return { subject, restored, resumed, shared, turn }
}

describe('the restoration of open batches', () => {
  it('takes turns of the event loop, and no group goes on before the last of its batches is there', async () => {
    const { subject, restored, resumed, shared, turn } = restoration(500)
    void subject.finish()
    const seen: unknown[] = []
    for (let n = 0; n < 3; n++) {
      await turn()
      seen.push([restored.length, resumed.includes(shared), subject.finished])
    }
    expect(seen).to.deep.equal([
      [228, false, false],
      [456, false, false],
      [500, true, true],
    ])
    expect(resumed.length).to.equal(499)
  })

  it('ends between two turns when its owner does', async () => {
    const { subject, restored, turn } = restoration(500)
    void subject.finish()
    await turn()
    subject.stop()
    for (let n = 0; n < 3; n++) await turn()
    expect([restored.length, subject.finished]).to.deep.equal([228, false])
  })
})
