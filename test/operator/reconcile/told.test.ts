import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { BufferState } from '../../../operator/reconcile/ports.ts'
import { hasOtherCounts, isNews, withCounts } from '../../../operator/reconcile/told.ts'
import { CLAIMED, SYNCED } from './fixtures.ts'

const told: BufferState = {
  bufferId: 'orders',
  enabled: true,
  updatedAt: 100,
  consecutiveDlqCount: 0,
  deadLetters: 0,
}
const seen = { enabled: true, updatedAt: 100 }

describe('what the service tells of a buffer', () => {
  const cases: readonly (readonly [title: string, news: boolean, ...Parameters<typeof isNews>])[] = [
    ['as it was seen is no news', false, { seen }, SYNCED, told],
    ['with more dead letters is no news', false, { seen }, SYNCED, { ...told, deadLetters: 5 }],
    ['changed since is news', true, { seen }, SYNCED, { ...told, updatedAt: 101 }],
    [
      'from before it was seen is no news',
      false,
      { seen },
      SYNCED,
      { ...told, updatedAt: 99, enabled: false },
    ],
    ['disabled since is news', true, { seen }, SYNCED, { ...told, enabled: false, pausedAt: 1 }],
    [
      'paused once more since is news',
      true,
      { seen: { ...seen, pausedAt: 1 } },
      SYNCED,
      { ...told, pausedAt: 2 },
    ],
    ['gone since is news', true, { seen }, SYNCED, null],
    ['unseen yet, and as the status has it, is no news', false, {}, SYNCED, told],
    ['unseen yet, and not as the status has it, is news', true, {}, SYNCED, { ...told, enabled: false }],
    ['unseen yet, and gone, is news', true, {}, SYNCED, null],
    ['that does not exist yet is no news', false, {}, CLAIMED, null],
    ['that exists by now is news', true, {}, CLAIMED, told],
  ]
  for (const [title, news, ...given] of cases) {
    it(title, () => expect(isNews(...given)).to.equal(news))
  }

  it('is counted in the status, and is no change when the counts are the same', () => {
    const counts = {
      ...told,
      deadLetters: 5,
      consecutiveDlqCount: 2,
      lastDeadLetterAt: Date.UTC(2026, 2, 1, 12, 0, 0, 7),
    }
    expect(hasOtherCounts(SYNCED, counts)).to.equal(true)
    const status = withCounts(SYNCED, counts)
    expect(status).to.deep.equal({
      ...SYNCED,
      consecutiveDlqCount: 2,
      deadLetters: 5,
      lastDeadLetterTime: '2026-03-01T12:00:00Z',
    })
    expect(hasOtherCounts(status, counts)).to.equal(false)
    // Within the same second.
    expect(hasOtherCounts(status, { ...counts, lastDeadLetterAt: counts.lastDeadLetterAt + 900 })).to.equal(
      false,
    )
    expect(withCounts(status, { ...told, deadLetters: 0 })).to.not.have.property('lastDeadLetterTime')
  })

  it('is not counted where the buffer is not the resource`s', () => {
    expect(hasOtherCounts(CLAIMED, { ...told, deadLetters: 5 })).to.equal(false)
    expect(hasOtherCounts(undefined, told)).to.equal(false)
  })
})
