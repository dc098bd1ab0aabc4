/** When a journal may be cut: behind a snapshot that is on disk, was read back and proven, and behind what it does not hold. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { Cut, type CutOptions } from '../../../internal/shard/housekeeping/cut.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

const LAG_MS = 45_000
const snapshotAt = (seq: number) => ({ name: { seq, identity: `${seq}` }, bytes: 1_000 })

describe('the cut of a journal', () => {
  let clock: ManualClock
  let steps: string[]
  let isThere: boolean
  let position: number
  let oldestCommit: number
  let bytes: number
  let proves: () => Promise<void>
  let lists: () => void

  beforeEach(() => {
    clock = new ManualClock()
    steps = []
    isThere = true
    position = 1_000
    oldestCommit = Number.POSITIVE_INFINITY
    bytes = 0
    proves = async () => {}
    lists = () => {}
  })

  function cutOf(found: ReturnType<typeof snapshotAt> | null = null, syncLagMs = LAG_MS): Cut {
    const parts = {
      clock,
      limits: { syncLagMs, fullShare: 0.6 },
      archive: {
        read: async ({ seq }: { seq: number }) => {
          steps.push(`read ${seq}`)
          return isThere ? Buffer.alloc(1) : undefined
        },
        list: async () => lists(),
        removeBefore: async ({ seq }: { seq: number }) => void steps.push(`remove before ${seq}`),
      },
      journalLog: {
        state: async () => ({ firstSeq: 1, lastSeq: 1_000, messages: 1_000, bytes, maxBytes: 1_000 }),
        purgeBelow: async (seq: number) => void steps.push(`purge below ${seq}`),
      },
      journal: {
        lastSeq: 1_000,
        last: { seq: 1_000, identity: '' },
        look: async () => {},
        checkTail: async () => void steps.push('tail'),
        prove: async () => {
          await proves()
          steps.push('prove')
        },
      },
      state: {
        kept: {
          get oldestCommit() {
            return oldestCommit
          },
        },
      },
      projector: {
        get position() {
          return position
        },
        waiting: 1,
        advance: () => {},
        flush: async () => {},
      },
      stopped: () => false,
      onMissing: () => steps.push('missing'),
      onProblem: (what: string) => steps.push(what),
    }
    return new Cut(parts as unknown as CutOptions, found)
  }

  /** Steps until it rests: what is allowed in one waits for the disk once more. */
  async function rounds(cut: Cut): Promise<string[]> {
    for (let round = 0; round < 3; round++) {
      await cut.step()
      clock.advance(LAG_MS)
    }
    return steps
  }

  it('waits for the disk, reads the snapshot back, proves, and waits for what allows the purge', async () => {
    const cut = cutOf()
    cut.behind(snapshotAt(100))
    await cut.step()
    expect(steps, 'before it is on disk').to.deep.equal([])
    clock.advance(LAG_MS)
    await cut.step()
    expect(steps).to.deep.equal(['read 100', 'prove', 'remove before 100'])
    clock.advance(LAG_MS)
    await cut.step()
    expect(steps.slice(3)).to.deep.equal(['tail', 'purge below 100'])
  })

  it('does all of it at once where the broker has on disk what it answers', async () => {
    await cutOf(snapshotAt(100), 0).step()
    expect(steps).to.deep.equal(['read 100', 'prove', 'remove before 100', 'purge below 100'])
  })

  it('cuts behind the snapshot that the claim began with', async () => {
    expect(await rounds(cutOf(snapshotAt(100)))).to.include('purge below 100')
  })

  it('keeps the oldest commit with a kept item, and what is not counted', async () => {
    oldestCommit = 40
    expect(await rounds(cutOf(snapshotAt(100)))).to.include('purge below 40')
    steps = []
    position = 20
    expect(await rounds(cutOf(snapshotAt(100)))).to.include('purge below 21')
  })

  it('tells, and does not wait for the counters, in a journal that is nearly full', async () => {
    position = 20
    bytes = 700
    const told = await rounds(cutOf(snapshotAt(100)))
    expect(told).to.include('purge below 100')
    expect(told).to.include('delivery counters lag behind a journal that is nearly full')
  })

  it('says so when the snapshot is not there any more, and cuts nothing', async () => {
    isThere = false
    const told = await rounds(cutOf(snapshotAt(100)))
    expect(told).to.include('missing')
    expect(told.filter((step) => step.startsWith('purge') || step.startsWith('remove'))).to.deep.equal([])
  })

  it('reads a snapshot once more behind a fresh list, where a server does not have it', async () => {
    isThere = false
    lists = () => {
      isThere = true
    }
    expect(await rounds(cutOf(snapshotAt(100)))).to.include('purge below 100')
    expect(steps).to.not.include('missing')
  })

  it('cuts and removes nothing without a proof', async () => {
    proves = () => Promise.reject(new Error('fenced'))
    const cut = cutOf(snapshotAt(100), 0)
    await cut.step().catch(() => {})
    expect(steps).to.deep.equal(['read 100'])
  })

  it('waits for the disk and reads back again when the broker was away', async () => {
    const cut = cutOf(snapshotAt(100))
    clock.advance(LAG_MS)
    await cut.step()
    clock.advance(LAG_MS - 1)
    cut.reconnected()
    clock.advance(1)
    await cut.step()
    expect(steps.filter((step) => step.startsWith('purge'))).to.deep.equal([])
    expect(await rounds(cut)).to.include('purge below 100')
    expect(steps.filter((step) => step === 'read 100')).to.have.length(2)
  })

  it('takes no snapshot for read back that was read before the broker was away', async () => {
    const cut = cutOf(snapshotAt(100), 0)
    proves = async () => {
      proves = async () => {}
      cut.reconnected()
    }
    await cut.step()
    expect(steps).to.deep.equal(['read 100', 'prove'])
  })
})
