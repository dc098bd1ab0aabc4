/** When an inbox is purged: behind a horizon that is on disk, and behind all retries of an append. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { InboxKeeper } from '../../../internal/shard/housekeeping/inbox.ts'
import type { HousekeepingLimits } from '../../../internal/shard/housekeeping/limits.ts'
import type { HousekeepingOwner } from '../../../internal/shard/housekeeping/owner.ts'
import { raiseHorizon } from '../../../internal/shard/journal/fold.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

const READ = 10

describe('an inbox of which all is over', () => {
  let clock: ManualClock
  let steps: string[]

  beforeEach(() => {
    clock = new ManualClock()
    steps = []
  })

  function keeperOf(limits: Partial<HousekeepingLimits>): InboxKeeper {
    const state = emptyState()
    const parts = {
      clock,
      limits,
      state,
      inboxLog: { purgeBelow: async (seq: number) => void steps.push(`purge below ${seq}`) },
      journal: {
        holdsBack: false,
        commit: async ({ seq }: { seq: number }) => {
          steps.push(`horizon ${seq}`)
          raiseHorizon(state, seq)
        },
        checkTail: async () => {},
      },
      replay: { cursor: READ },
      intake: { bytesRead: 1_000 },
      packs: { news: () => null },
      live: { lowestInboxSeq: undefined },
      duplicates: { lowestDropping: undefined },
      stopped: () => false,
    }
    return new InboxKeeper(parts as unknown as HousekeepingOwner)
  }

  /** Steps until just before this time, and at it. */
  async function stepsAround(keeper: InboxKeeper, ms: number): Promise<[before: string[], then: string[]]> {
    await keeper.step()
    clock.advance(ms - 1)
    await keeper.step()
    const before = steps.splice(0)
    clock.advance(1)
    await keeper.step()
    return [before, steps]
  }

  it('is purged so long after it was read', async () => {
    const keeper = keeperOf({ purgeLagMs: 30_000, syncLagMs: 0 })
    expect(await stepsAround(keeper, 30_000)).to.deep.equal([[`horizon ${READ}`], [`purge below ${READ}`]])
  })

  it('is purged once the horizon is on disk', async () => {
    const keeper = keeperOf({ purgeLagMs: 0, syncLagMs: 45_000 })
    expect(await stepsAround(keeper, 45_000)).to.deep.equal([[`horizon ${READ}`], [`purge below ${READ}`]])
  })

  it('waits for the disk again when the broker was away', async () => {
    const keeper = keeperOf({ purgeLagMs: 0, syncLagMs: 45_000 })
    await keeper.step()
    clock.advance(44_999)
    keeper.reconnected()
    expect(await stepsAround(keeper, 45_000)).to.deep.equal([[`horizon ${READ}`], [`purge below ${READ}`]])
  })
})
