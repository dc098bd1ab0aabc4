/**
 * The bytes of a journal commit: version, owner, epoch, optional high-water mark, records. One encoding for
 * ever: a reader refuses what it does not know, it never guesses.
 */
import type { FlushReason } from '../../domain/model.ts'
import type { PackName } from '../../domain/pack-id.ts'
import type { DeliveryFact } from '../ports.ts'
import { ByteReader, ByteWriter, CorruptBytesError } from './bytes.ts'
import type { Commit, JournalRecord, KeepRecord, Position, SeenRecord } from './records.ts'

const VERSION = 1
const HAS_HIGH_WATER = 1

const TYPES = [
  'epoch',
  'release',
  'seal',
  'unseal',
  'attempt',
  'done',
  'dead',
  'drop',
  'discard',
  'keep',
  'horizon',
  'seen',
] as const satisfies JournalRecord['type'][]
const CODES = new Map<JournalRecord['type'], number>(TYPES.map((type, code) => [type, code]))

export const FLUSH_REASONS: readonly FlushReason[] = ['items', 'bytes', 'idle', 'max_wait', 'segment']

/** Header of a commit; records follow as `encodeRecord` wrote them. */
export function encodeCommit(header: Omit<Commit, 'records'>, records: readonly Uint8Array[]): Buffer {
  const out = new ByteWriter(128 + records.reduce((sum, record) => sum + record.length, 0))
  out.byte(VERSION)
  out.byte(header.highWater ? HAS_HIGH_WATER : 0)
  out.uuid(header.boot)
  out.integer(header.epoch)
  out.integer(header.at)
  if (header.highWater) {
    out.integer(header.highWater.seq)
    out.text(header.highWater.packId)
  }
  for (const record of records) out.bytes(record)
  return out.view()
}

/** @throws CorruptBytesError */
export function decodeCommit(data: Uint8Array): Commit {
  const input = new ByteReader(data)
  const version = input.byte()
  if (version !== VERSION) throw new CorruptBytesError(`journal commit of version ${version}`)
  const flags = input.byte()
  const boot = input.uuid()
  const epoch = input.integer()
  const at = input.integer()
  const highWater = flags & HAS_HIGH_WATER ? { seq: input.integer(), packId: input.text() } : null
  const records: JournalRecord[] = []
  while (!input.done) records.push(decodeRecord(input))
  return { boot, epoch, at, highWater, records }
}

/** Sequences as differences: a keep is sorted by group, not by position. */
export function encodePositions(out: ByteWriter, positions: readonly Position[]): void {
  out.integer(positions.length)
  let previous = 0
  for (const { seq, index } of positions) {
    out.difference(seq - previous)
    out.integer(index)
    previous = seq
  }
}

export function decodePositions(input: ByteReader): Position[] {
  const positions: Position[] = []
  let seq = 0
  for (let left = input.integer(); left > 0; left--) {
    seq += input.difference()
    positions.push({ seq, index: input.integer() })
  }
  return positions
}

function encodeFact(out: ByteWriter, fact: DeliveryFact): void {
  out.byte(fact.outcome === 'delivered' ? 0 : 1)
  out.uuid(fact.bufferUid)
  for (const value of [fact.at, fact.items, fact.attempts, fact.timeToFlushMs, fact.durationMs])
    out.integer(value)
}

function decodeFact(input: ByteReader): DeliveryFact {
  return {
    outcome: input.byte() === 0 ? 'delivered' : 'dead',
    bufferUid: input.uuid(),
    at: input.integer(),
    items: input.integer(),
    attempts: input.integer(),
    timeToFlushMs: input.integer(),
    durationMs: input.integer(),
  }
}

function encodeKeep(out: ByteWriter, record: KeepRecord): void {
  encodePositions(
    out,
    record.items.map((kept) => kept.position),
  )
  for (const kept of record.items) {
    out.integer(kept.at)
    out.block(kept.item)
  }
}

function decodeKeep(input: ByteReader): KeepRecord {
  const positions = decodePositions(input)
  return {
    type: 'keep',
    items: positions.map((position) => ({ position, at: input.integer(), item: input.block() })),
  }
}

function encodeSeen(out: ByteWriter, { upTo, writers }: SeenRecord): void {
  out.integer(upTo)
  out.integer(writers.length)
  for (const { writer, number } of writers) {
    out.text(writer)
    out.integer(number)
  }
}

function decodeSeen(input: ByteReader): SeenRecord {
  const upTo = input.integer()
  const writers: PackName[] = []
  for (let left = input.integer(); left > 0; left--)
    writers.push({ writer: input.text(), number: input.integer() })
  return { type: 'seen', upTo, writers }
}

export function encodeRecord(record: JournalRecord): Buffer {
  const out = new ByteWriter(record.type === 'keep' ? 4096 : 160)
  out.byte(CODES.get(record.type)!)
  switch (record.type) {
    case 'epoch':
      break
    case 'release':
      out.integer(record.batches.length)
      for (const batch of record.batches) {
        out.token(batch.groupId)
        out.integer(batch.version)
        out.integer(batch.deadline)
      }
      break
    case 'seal':
      out.token(record.groupId)
      out.uuid(record.bufferUid)
      out.integer(record.segment)
      out.byte(FLUSH_REASONS.indexOf(record.reason))
      out.integer(record.firstItemAt)
      out.integer(record.lastActivityAt)
      encodePositions(out, record.positions)
      out.block(record.itemsHash)
      out.block(record.bodySha256)
      out.integer(record.serializer)
      break
    case 'unseal':
      out.token(record.groupId)
      out.integer(record.version)
      break
    case 'attempt':
      out.token(record.groupId)
      out.integer(record.version)
      out.integer(record.attempt)
      out.integer(record.nextAt)
      break
    case 'done':
    case 'dead':
      out.token(record.groupId)
      out.integer(record.version)
      encodeFact(out, record.fact)
      break
    case 'drop':
      out.integer(record.position.seq)
      out.integer(record.position.index)
      out.uuid(record.itemId)
      out.uuid(record.originalItemId)
      break
    case 'discard':
      out.byte(record.batch ? 1 : 0)
      if (record.batch) {
        out.token(record.batch.groupId)
        out.integer(record.batch.version)
      }
      encodePositions(out, record.positions)
      break
    case 'keep':
      encodeKeep(out, record)
      break
    case 'horizon':
      out.integer(record.seq)
      break
    case 'seen':
      encodeSeen(out, record)
      break
  }
  return out.view()
}

/** Its hashes are copies: an open batch would hold the whole commit else, with what it keeps. */
function decodeSeal(input: ByteReader): JournalRecord {
  const groupId = input.token()
  const bufferUid = input.uuid()
  const segment = input.integer()
  const reason = FLUSH_REASONS[input.byte()]
  if (!reason) throw new CorruptBytesError('seal with an unknown flush reason')
  return {
    type: 'seal',
    groupId,
    bufferUid,
    segment,
    reason,
    firstItemAt: input.integer(),
    lastActivityAt: input.integer(),
    positions: decodePositions(input),
    itemsHash: new Uint8Array(input.block()),
    bodySha256: new Uint8Array(input.block()),
    serializer: input.integer(),
  }
}

function decodeRelease(input: ByteReader): JournalRecord {
  const batches: { groupId: string; version: number; deadline: number }[] = []
  for (let left = input.integer(); left > 0; left--) {
    batches.push({ groupId: input.token(), version: input.integer(), deadline: input.integer() })
  }
  return { type: 'release', batches }
}

export function decodeRecord(input: ByteReader): JournalRecord {
  const code = input.byte()
  const type = TYPES[code]
  if (type === undefined) throw new CorruptBytesError(`journal record of type ${code}`)
  switch (type) {
    case 'epoch':
      return { type }
    case 'release':
      return decodeRelease(input)
    case 'seal':
      return decodeSeal(input)
    case 'unseal':
      return { type, groupId: input.token(), version: input.integer() }
    case 'attempt':
      return {
        type,
        groupId: input.token(),
        version: input.integer(),
        attempt: input.integer(),
        nextAt: input.integer(),
      }
    case 'done':
    case 'dead':
      return { type, groupId: input.token(), version: input.integer(), fact: decodeFact(input) }
    case 'drop':
      return {
        type,
        position: { seq: input.integer(), index: input.integer() },
        itemId: input.uuid(),
        originalItemId: input.uuid(),
      }
    case 'discard': {
      const batch = input.byte() === 1 ? { groupId: input.token(), version: input.integer() } : null
      return { type, batch, positions: decodePositions(input) }
    }
    case 'keep':
      return decodeKeep(input)
    case 'horizon':
      return { type, seq: input.integer() }
    case 'seen':
      return decodeSeen(input)
  }
}
