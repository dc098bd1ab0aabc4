import { expect } from 'chai'
import { describe, it } from 'mocha'
import { KeptPlaces } from '../../../internal/shard/journal/kept-places.ts'

describe('places of kept items', () => {
  it('know the oldest commit that still holds one', () => {
    const kept = new KeptPlaces()
    expect(kept.oldestCommit).to.equal(Number.POSITIVE_INFINITY)
    kept.set(1, 0, { commit: 10, ordinal: 0 })
    kept.set(2, 0, { commit: 10, ordinal: 1 })
    kept.set(3, 0, { commit: 12, ordinal: 0 })
    kept.delete(1, 0)
    kept.delete(1, 0)
    expect(kept.oldestCommit).to.equal(10)
    // Carried forward.
    kept.set(2, 0, { commit: 14, ordinal: 0 })
    expect(kept.oldestCommit).to.equal(12)
    const frozen = kept.copy()
    kept.delete(3, 0)
    expect([frozen.oldestCommit, kept.oldestCommit]).to.deep.equal([12, 14])
    expect(kept.size).to.equal(1)
  })
})
