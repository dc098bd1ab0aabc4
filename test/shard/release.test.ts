/** How large a release can get: it is one record, and the broker takes no longer message than a commit. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { encodeRecord } from '../../internal/shard/journal/codec.ts'
import { type JournalRecord, MAX_COMMIT_BYTES } from '../../internal/shard/journal/records.ts'
import type { ShardParts } from '../../internal/shard/parts.ts'
import { releaseClaim } from '../../internal/shard/release.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

const VERSION = 1_790_000_000_000_000
const DEADLINE = 1_790_000_000_000

describe('the release of a shard', () => {
  const batch = (n: number) => ({
    groupId: String(n).padStart(22, 'A'),
    version: VERSION + n,
    deadline: DEADLINE,
  })

  /** What is written when so many attempts run. */
  async function released(running: number): Promise<JournalRecord> {
    const written: JournalRecord[] = []
    const parts = {
      batches: { attempts: { inFlight: () => Array.from({ length: running }, (_, n) => batch(n)) } },
      restoration: { finished: true },
      journal: { commit: async (record: JournalRecord) => written.push(record) },
    }
    await releaseClaim(parts as unknown as ShardParts, new ManualClock())
    return written[0]!
  }

  it('names all that a process can run', async () => {
    const record = await released(8_192)
    expect(record.type === 'release' && record.batches).to.have.length(8_192)
  })

  it('fits into a commit, however much runs', async () => {
    expect(encodeRecord(await released(100_000)).length).to.be.below(MAX_COMMIT_BYTES)
  })
})
