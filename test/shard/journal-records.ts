/** Records and commits for tests: real shapes, few groups and positions, so that they meet. */
import fc from 'fast-check'
import type { Commit, JournalRecord, Position } from '../../internal/shard/journal/records.ts'

export const BOOT = '00000000-0000-4000-8000-000000000001'
export const UID = '11111111-1111-4111-8111-111111111111'
export const FIRST = 1_700_000_000_000_000

export function groupId(number: number): string {
  return Buffer.alloc(16, number).toString('base64url')
}

export function uuid(number: number): string {
  return `22222222-2222-4222-8222-${String(number).padStart(12, '0')}`
}

export function commitOf(records: JournalRecord[], at = 0): Commit {
  return { boot: BOOT, epoch: FIRST, at, highWater: null, records }
}

export function seal(group: number, positions: Position[]): JournalRecord {
  return {
    type: 'seal',
    groupId: groupId(group),
    bufferUid: UID,
    segment: 0,
    reason: 'items',
    firstItemAt: 1,
    lastActivityAt: 2,
    positions,
    itemsHash: Buffer.alloc(16, 1),
    bodySha256: Buffer.alloc(32, 2),
    serializer: 1,
  }
}

export function settled(type: 'done' | 'dead', group: number, version: number): JournalRecord {
  return {
    type,
    groupId: groupId(group),
    version,
    fact: {
      outcome: type === 'done' ? 'delivered' : 'dead',
      bufferUid: UID,
      at: 5,
      items: 1,
      attempts: 1,
      timeToFlushMs: 0,
      durationMs: 3,
    },
  }
}

const position = fc.record({
  seq: fc.integer({ min: FIRST, max: FIRST + 12 }),
  index: fc.integer({ min: 0, max: 40 }),
})
const positions = fc
  .uniqueArray(position, { minLength: 1, maxLength: 4, selector: ({ seq, index }) => `${seq}/${index}` })
  .map((some) => some.sort((a, b) => a.seq - b.seq || a.index - b.index))
const group = fc.integer({ min: 0, max: 2 })
/** Versions are sequences of earlier commits: a random one of the last dozen. */
const version = fc.integer({ min: FIRST, max: FIRST + 40 })
const bytes = fc.uint8Array({ maxLength: 20 })

export const anyRecord: fc.Arbitrary<JournalRecord> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(group, positions).map(([of, at]) => seal(of, at)) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom('done', 'dead'), group, version)
      .map(([type, of, v]) => settled(type, of, v)),
  },
  fc.tuple(group, version).map(([of, v]) => ({ type: 'unseal', groupId: groupId(of), version: v })),
  fc.record({
    type: fc.constant('attempt'),
    groupId: group.map(groupId),
    version,
    attempt: fc.integer({ min: 2, max: 5 }),
    nextAt: fc.integer({ min: 0, max: 1e12 }),
  }),
  fc.record({
    type: fc.constant('drop'),
    position,
    itemId: fc.integer({ min: 0, max: 99 }).map(uuid),
    originalItemId: fc.integer({ min: 0, max: 99 }).map(uuid),
  }),
  fc.record({
    type: fc.constant('discard'),
    batch: fc.option(fc.record({ groupId: group.map(groupId), version }), { nil: null }),
    positions: fc.oneof(fc.constant([]), positions),
  }),
  fc.record({
    type: fc.constant('keep'),
    items: positions.chain((some) =>
      fc.tuple(
        ...some.map((at) =>
          fc.record({ position: fc.constant(at), at: fc.integer({ min: 0, max: 1e12 }), item: bytes }),
        ),
      ),
    ),
  }),
  fc.record({
    type: fc.constant('seen'),
    upTo: fc.integer({ min: FIRST, max: FIRST + 12 }),
    writers: fc.array(
      fc.record({ writer: fc.constantFrom('a', 'b', 'c'), number: fc.integer({ min: 0, max: 9 }) }),
      { maxLength: 3 },
    ),
  }),
  fc.record({ type: fc.constant('horizon'), seq: fc.integer({ min: FIRST, max: FIRST + 12 }) }),
  fc.record({
    type: fc.constant('release'),
    batches: fc.array(
      fc.record({ groupId: group.map(groupId), version, deadline: fc.integer({ min: 0, max: 1e12 }) }),
      {
        maxLength: 2,
      },
    ),
  }),
) as fc.Arbitrary<JournalRecord>

/** Everything that can stand in a journal, also what the fold sees only around take-overs. */
export const everyRecord: fc.Arbitrary<JournalRecord> = fc.oneof(
  anyRecord,
  fc.constant<JournalRecord>({ type: 'epoch' }),
)
