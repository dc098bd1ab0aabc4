import { expect } from 'chai'
import { describe, it } from 'mocha'
import { encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'
import { JournalRoom, kindOf } from '../../../internal/shard/journal/room.ts'
import { writeSnapshot } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { commitOf, FIRST, groupId, seal, uuid } from '../journal-records.ts'

/** Unix ms; it fixes how long the times in a snapshot are. */
const NOW = 1_790_000_000_000
const LIMIT = 1_000_000
const drop = { type: 'drop' } as JournalRecord
const done = { type: 'done' } as JournalRecord
const keep = { type: 'keep', items: Array.from({ length: 100 }, () => ({})) } as unknown as JournalRecord
const part = { type: 'snapshot-part' } as JournalRecord

function roomAt(bytes: number, state = 0): JournalRoom {
  const room = new JournalRoom()
  room.told({ bytes, maxBytes: LIMIT }, 0)
  room.stateIs(state, 0, 0)
  return room
}

const taken = (room: JournalRoom) => (['work', 'results', 'upkeep'] as const).filter((kind) => room.has(kind))

describe('room in a journal', () => {
  it('is there for everything while there is no limit, or none is known', () => {
    const [unknown, unlimited] = [new JournalRoom(), new JournalRoom()]
    unlimited.told({ bytes: LIMIT, maxBytes: -1 }, 0)
    for (const room of [unknown, unlimited]) {
      room.take(drop, 10 * LIMIT)
      expect([taken(room), room.isUncertain]).to.deep.equal([['work', 'results', 'upkeep'], false])
    }
  })

  it('ends for work first, then for results, and never for what makes room', () => {
    expect(taken(roomAt(849_999))).to.deep.equal(['work', 'results', 'upkeep'])
    expect(taken(roomAt(850_000))).to.deep.equal(['results', 'upkeep'])
    expect(taken(roomAt(950_000))).to.deep.equal(['upkeep'])
  })

  it('is kept for the next snapshot: what makes the state larger counts twice', () => {
    expect(taken(roomAt(500_000, 350_000))).to.deep.equal(['results', 'upkeep'])
    for (const [record, bytes, used] of [
      [drop, 1_000, 2_020],
      [done, 1_000, 1_000],
      [keep, 50_000, 51_600],
    ] as const) {
      const room = roomAt(0)
      room.take(record, bytes)
      expect(room.used, record.type).to.equal(used)
    }
  })

  describe('counts at least what a snapshot holds more', () => {
    const position = (n: number) => ({ seq: FIRST + 10 * n, index: n % 100 })
    const kinds: Record<string, (n: number) => JournalRecord[]> = {
      drops: (n) => [
        { type: 'drop', position: position(n), itemId: uuid(n), originalItemId: uuid(n + 10_000) },
      ],
      'seals, tried again': (n) => [
        seal(n, [position(n), { ...position(n), index: 200 }]),
        { type: 'attempt', groupId: groupId(n), version: FIRST + n, attempt: 9, nextAt: NOW + n },
      ],
      discards: (n) => [{ type: 'discard', batch: null, positions: [position(n)] }],
      'kept items': (n) => [
        { type: 'keep', items: [{ position: position(n), at: NOW, item: Buffer.alloc(10) }] },
      ],
      'seen packs': (n) => [{ type: 'seen', upTo: FIRST + n, writers: [{ writer: uuid(n), number: n }] }],
    }
    for (const [name, records] of Object.entries(kinds)) {
      it(name, () => {
        const state = emptyState()
        const before = writeSnapshot(state).length
        const room = new JournalRoom()
        for (let n = 1; n <= 1_000; n++) {
          for (const record of records(n)) room.grow(record, encodeRecord(record).length)
          applyCommit(state, { seq: FIRST + n, commit: commitOf(records(n), NOW) })
        }
        const grown = writeSnapshot(state).length - before
        expect(room.used).to.be.at.least(grown)
      })
    }
  })

  it('is taken by a snapshot from its begin on, not part by part', () => {
    const room = roomAt(100_000)
    room.stateIs(50_000, 50_000, 0)
    expect(room.used).to.equal(200_000)
    room.take(part, 30_000)
    room.take(part, 20_010)
    expect(room.used).to.equal(200_010)
  })

  it('knows how many drops it counts, until it is told the state anew', () => {
    const room = roomAt(0)
    room.stateIs(500, 0, 10)
    room.take(drop, 42)
    room.take(done, 42)
    expect(room.drops).to.equal(11)
    room.freeze()
    room.stateIs(0, 0, 0)
    expect(room.drops).to.equal(0)
  })

  it('counts what comes while the state is measured', () => {
    const room = roomAt(0, 500)
    room.take(drop, 80)
    room.freeze()
    expect(room.used).to.equal(500 + 80 + 100)
    room.take(drop, 1_000)
    room.stateIs(200, 0, 3)
    expect([room.used, room.drops]).to.deep.equal([80 + 1_000 + 200 + 1_020, 4])
  })

  it('counts what the broker was not asked about yet, and once what it was', () => {
    const room = roomAt(100_000)
    room.take(done, 1_000)
    room.sent()
    room.stored(1_000)
    const { answered } = room
    room.take(done, 5_000)
    // The broker may have stored the second one when it answers, and may not.
    room.told({ bytes: 101_200, maxBytes: LIMIT }, answered)
    expect(room.used).to.equal(101_200 + 5_000)
  })

  it('is asked for again once half of it is used, and always when there is none', () => {
    const room = roomAt(450_000)
    room.take(done, 199_000)
    expect(room.isUncertain).to.equal(false)
    room.take(done, 2_000)
    expect(room.isUncertain).to.equal(true)
    room.told({ bytes: 900_000, maxBytes: LIMIT }, 0)
    expect(room.isUncertain).to.equal(true)
  })
})

describe('kinds of records', () => {
  it('are those that begin something, end something, mean that all before is there, and make room', () => {
    for (const type of ['seal', 'discard'] as const)
      expect(kindOf({ type } as JournalRecord), type).to.equal('work')
    expect(kindOf({ type: 'release', batches: [] })).to.equal('last')
    const upkeep = ['keep', 'horizon', 'seen', 'snapshot-begin', 'snapshot-part', 'snapshot-end'] as const
    for (const type of upkeep) expect(kindOf({ type } as JournalRecord), type).to.equal('upkeep')
    for (const type of ['unseal', 'attempt', 'done', 'dead', 'drop'] as const)
      expect(kindOf({ type } as JournalRecord), type).to.equal('results')
  })
})
