import { expect } from 'chai'
import { describe, it } from 'mocha'
import { decide } from '../../../operator/reconcile/decide.ts'
import { ORPHAN_UNANSWERED_MS } from '../../../operator/reconcile/deletion.ts'
import { AdminError } from '../../../operator/reconcile/ports.ts'
import { afterRefusal } from '../../../operator/reconcile/refusal.ts'
import { JUST_NOW, KEY, observed, SYNCED } from './fixtures.ts'

const OTHER_KEY = `svk_${'1b'.repeat(24)}`
const deleted = { deletionTimestamp: JUST_NOW }

describe('a deletion that gets no answer', () => {
  const away = new AdminError('unavailable', 'away')
  const removal = { act: 'remove', key: OTHER_KEY } as const
  const gone = { metadata: deleted, status: SYNCED, secrets: [], lastKeys: [OTHER_KEY] }

  it('is repeated, but not for ever once the Secret is gone', () => {
    const early = observed({ ...gone, strandedMs: ORPHAN_UNANSWERED_MS - 1 })
    expect(afterRefusal(early, removal, away)).to.equal(undefined)
    const late = afterRefusal(observed({ ...gone, strandedMs: ORPHAN_UNANSWERED_MS }), removal, away)!
    expect(decide(late)).to.deep.equal({ act: 'release', orphaned: 'away' })
  })

  it('is repeated for ever while the Secret is there', () => {
    const held = observed({ metadata: deleted, status: SYNCED })
    expect(afterRefusal(held, { act: 'remove', key: KEY }, away)).to.equal(undefined)
  })
})
