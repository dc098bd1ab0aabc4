/**
 * Configuration of buffers in memory, by internal uid for the shards and by caller-chosen id for ingest
 * (docs/architecture/protocol.md, "Cached configuration"). A record is as new as the change feed allows: what this
 * node commits is seen at once, what others commit within the feed's delay.
 *
 * Invariants: a record never gives way to an older version of itself; that an id is unknown is never
 * remembered, so what was just created works everywhere. By id nothing is answered that is known to have changed, or
 * that may have changed longer ago than a minute: then Postgres is asked. Where shards run, records of deleted buffers
 * stay by uid, for the shards still hold their items; about 2 KB a buffer that this node ever asked for. They go when a
 * re-read does not find their rows. Elsewhere they go at once: whoever creates and deletes without end must not fill
 * memory.
 */

import { isIdentifier } from '../domain/identifiers.ts'
import type { BufferRecord } from '../domain/model.ts'
import type { Clock } from '../runtime/clock.ts'
import { createFreshness } from '../runtime/freshness.ts'
import { createGatheredReads } from '../runtime/gathered-reads.ts'
import { Generations } from '../runtime/generations.ts'
import type { Moment } from '../runtime/moment.ts'
import type { BufferRows } from './ports.ts'

export interface BufferCache {
  /** By uid, without waiting; deleted ones too where they are kept. */
  peek(uid: string): BufferRecord | undefined
  /** By uid; undefined: no such row. Rejects while the database is away and the record is not here. */
  load(uid: string): Promise<BufferRecord | undefined>
  /** By id; undefined: unknown, deleted, not here yet, or not certain any more. */
  peekById(bufferId: string): BufferRecord | undefined
  /** By id; undefined: unknown or deleted. Rejects as `load`. */
  loadById(bufferId: string): Promise<BufferRecord | undefined>
  /** Takes a record that was just read or committed; an older version than the one held is ignored. */
  accept(record: BufferRecord): void
  /**
   * Rows with these uids changed: their ids are not answered from memory until they are read again. Resolves when those
   * held here are, rejects when one cannot be.
   */
  changed(uids: readonly string[]): Promise<void>
  /** Anything may have changed, also backwards (a restored database): every record is read again, as by `changed`. */
  reset(): Promise<void>
  /** Every change that was committed before `at` was told. */
  caughtUp(at: Moment): void
  /** Called after each change of a record; returns the unsubscriber. */
  onChange(listener: (record: BufferRecord) => void): () => void
}

export interface BufferCacheOptions {
  rows: BufferRows
  clock: Clock
  /** Whether shards run here, which ask for deleted buffers by uid. Default true. */
  keepsDeleted?: boolean
}

/** Of so many a read that began before their deletion is known to be outdated: more than are deleted while one runs. */
const DELETED_KNOWN = 5_000

export function createBufferCache({ rows, clock, keepsDeleted = true }: BufferCacheOptions): BufferCache {
  const byUid = new Map<string, BufferRecord>()
  /** What ingest is answered. */
  const byId = new Map<string, BufferRecord>()
  const listeners = new Set<(record: BufferRecord) => void>()
  const freshness = createFreshness(clock)
  /** Records from before a reset: they give way to whatever is read. */
  let doubtful = new Set<string>()
  /** Versions of deleted ones that are not kept. */
  let gone = new Generations<string, number>(DELETED_KNOWN)

  const identity = (record: BufferRecord): string => record.uid
  const uidReads = createGatheredReads({ read: rows.byUids, identity, keep, clock })
  const idReads = createGatheredReads({ read: rows.byIds, identity, keep, clock })

  /** What a row says now: the record held is as new, or newer. */
  function keep(read: BufferRecord): void {
    accept(read)
    const held = byUid.get(read.uid)
    if (held !== undefined) index(held)
  }

  function accept(record: BufferRecord): void {
    const known = byUid.get(record.uid)?.version ?? gone.get(record.uid)
    const outdated = known !== undefined && record.version <= known
    if (outdated && !doubtful.delete(record.uid)) return
    doubtful.delete(record.uid)
    if (record.deleted && !keepsDeleted) letGo(record)
    else byUid.set(record.uid, record)
    index(record)
    for (const listener of listeners) listener(record)
  }

  /** Its version stays, so that a read that began before does not bring it back. */
  function letGo({ uid, version }: BufferRecord): void {
    byUid.delete(uid)
    gone.set(uid, version)
  }

  /** An id belongs to one buffer that is not deleted; of two, the one created later. */
  function index(record: BufferRecord): void {
    const { bufferId, createdAt } = record.buffer
    const holder = byId.get(bufferId)
    if (holder !== undefined && holder.uid !== record.uid && holder.buffer.createdAt > createdAt) return
    if (record.deleted) unindex(record)
    else byId.set(bufferId, record)
  }

  function unindex({ uid, buffer }: BufferRecord): void {
    if (byId.get(buffer.bufferId)?.uid === uid) byId.delete(buffer.bufferId)
  }

  function drop(record: BufferRecord): void {
    byUid.delete(record.uid)
    doubtful.delete(record.uid)
    unindex(record)
  }

  /** Those that are not found are not there any more. One that cannot be read keeps no other from its end. */
  async function reread(records: readonly BufferRecord[]): Promise<void> {
    const reads = records.map(async (record) => {
      if ((await uidReads.get(record.uid)) === undefined) drop(record)
    })
    await Promise.allSettled(reads)
    await Promise.all(reads)
  }

  return {
    peek: (uid) => byUid.get(uid),
    async load(uid) {
      if (!byUid.has(uid)) await uidReads.get(uid)
      // Not what was read: it may be outdated already.
      return byUid.get(uid)
    },
    peekById: (bufferId) => (freshness.holds() ? byId.get(bufferId) : undefined),
    async loadById(bufferId) {
      // Text that is no id could spoil the statement that others share, and names nothing.
      if (!isIdentifier(bufferId)) return undefined
      const held = byId.get(bufferId)
      if (held !== undefined && freshness.holds()) return held
      const found = await idReads.get(bufferId)
      if (found === undefined && held !== undefined && byId.get(bufferId) === held) unindex(held)
      return byId.get(bufferId)
    },
    accept,
    async changed(uids) {
      uidReads.changed(uids)
      idReads.changed(uids)
      const held = uids.flatMap((uid) => byUid.get(uid) ?? [])
      for (const record of held) unindex(record)
      await reread(held)
    },
    async reset() {
      uidReads.allChanged()
      idReads.allChanged()
      byId.clear()
      gone = new Generations(DELETED_KNOWN)
      doubtful = new Set(byUid.keys())
      await reread([...byUid.values()])
    },
    caughtUp: freshness.caughtUp,
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
