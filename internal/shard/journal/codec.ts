/**
 * The bytes of a journal commit: version, owner, epoch, optional high-water mark, records. One encoding for
 * ever: a reader refuses what it does not know, it never guesses.
 */
import type { PackName } from '../../domain/pack-id.ts'
import type { DeliveryFact } from '../ports.ts'
import type { BatchName } from './batch-name.ts'
import { ByteReader, ByteWriter, CorruptBytesError } from './bytes.ts'
import type { Commit, HighWater, JournalRecord, KeptItem, Position } from './records.ts'
import {
  block,
  type Codec,
  constant,
  integer,
  list,
  type Members,
  oneOf,
  optional,
  struct,
  text,
  token,
  uuid,
} from './struct.ts'

const VERSION = 2

/** Sequences as differences: a keep is sorted by group, not by position. */
export const positions: Codec<readonly Position[]> = {
  write(out, value) {
    out.integer(value.length)
    let previous = 0
    for (const { seq, index } of value) {
      out.difference(seq - previous)
      out.integer(index)
      previous = seq
    }
  },
  read(input) {
    const value: Position[] = []
    let seq = 0
    for (let left = input.integer(); left > 0; left--) {
      seq += input.difference()
      value.push({ seq, index: input.integer() })
    }
    return value
  },
}

/** Their bytes are views on the commit, for which their offsets in it count. */
const keptItems: Codec<readonly KeptItem[]> = {
  write(out, items) {
    positions.write(
      out,
      items.map(({ position }) => position),
    )
    for (const { at, item } of items) {
      out.integer(at)
      out.block(item)
    }
  },
  read: (input) =>
    positions.read(input).map((position) => ({ position, at: input.integer(), item: input.block() })),
}

const batchName: Members<BatchName> = { groupId: token, version: integer }

const fact = struct<DeliveryFact>({
  outcome: oneOf(['delivered', 'dead']),
  bufferUid: uuid,
  at: integer,
  items: integer,
  attempts: integer,
  timeToFlushMs: integer,
  durationMs: integer,
})

type RecordType = JournalRecord['type']
type RecordOf<Type extends RecordType> = JournalRecord & { type: Type }

/** Every record there is. Its place is the first byte that is written of it: a new one goes to the end. */
const RECORDS: { readonly [Type in RecordType]: Members<Omit<RecordOf<Type>, 'type'>> } = {
  epoch: {},
  release: { batches: list(struct({ ...batchName, deadline: integer })) },
  seal: {
    groupId: token,
    bufferUid: uuid,
    segment: integer,
    reason: oneOf(['items', 'bytes', 'idle', 'max_wait', 'segment']),
    firstItemAt: integer,
    lastActivityAt: integer,
    positions,
    itemsHash: block,
    bodySha256: block,
    serializer: integer,
  },
  unseal: batchName,
  attempt: { ...batchName, attempt: integer, nextAt: integer },
  done: { ...batchName, fact },
  dead: { ...batchName, fact },
  drop: { position: struct({ seq: integer, index: integer }), itemId: uuid, originalItemId: uuid },
  discard: { batch: optional(struct(batchName)), positions },
  keep: { items: keptItems },
  horizon: { seq: integer },
  seen: { upTo: integer, writers: list(struct<PackName>({ writer: text, number: integer })) },
}

const TYPES = Object.keys(RECORDS) as RecordType[]
const CODES = new Map(TYPES.map((type, code) => [type, code]))
/** By code. */
const CODECS: readonly Codec<JournalRecord>[] = TYPES.map(codecOf)

/** Of the record without its code. */
export function codecOf<Type extends RecordType>(type: Type): Codec<RecordOf<Type>> {
  return struct({ type: constant(type), ...RECORDS[type] } as unknown as Members<RecordOf<Type>>)
}

export function encodeRecord(record: JournalRecord): Buffer {
  const out = new ByteWriter(record.type === 'keep' ? 4096 : 160)
  const code = CODES.get(record.type)!
  out.byte(code)
  CODECS[code]!.write(out, record)
  return out.view()
}

export function decodeRecord(input: ByteReader): JournalRecord {
  const code = input.byte()
  const codec = CODECS[code]
  if (codec === undefined) throw new CorruptBytesError(`journal record of type ${code}`)
  return codec.read(input)
}

export const highWater = struct<HighWater>({ seq: integer, packId: text })

const commitHeader = struct<Omit<Commit, 'records'>>({
  boot: uuid,
  epoch: integer,
  at: integer,
  highWater: optional(highWater),
})

/** Records as `encodeRecord` wrote them. */
export function encodeCommit(header: Omit<Commit, 'records'>, records: readonly Uint8Array[]): Buffer {
  const out = new ByteWriter(128 + records.reduce((sum, record) => sum + record.length, 0))
  out.byte(VERSION)
  commitHeader.write(out, header)
  for (const record of records) out.bytes(record)
  return out.view()
}

/** @throws CorruptBytesError */
export function decodeCommit(data: Uint8Array): Commit {
  const input = new ByteReader(data)
  const version = input.byte()
  if (version !== VERSION) throw new CorruptBytesError(`journal commit of version ${version}`)
  const header = commitHeader.read(input)
  const records: JournalRecord[] = []
  while (!input.done) records.push(decodeRecord(input))
  return { ...header, records }
}
