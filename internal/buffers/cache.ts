/**
 * Configuration of buffers in memory, by internal uid for the shards and by caller-chosen id for ingest
 * (docs/architecture/protocol.md, "Cached configuration"). A record is as new as the change feed allows: what this
 * node commits is seen at once, what others commit within the feed's delay.
 *
 * Invariants: a record never gives way to an older version of itself; that an id is unknown is never
 * remembered, so what was just created works everywhere. Records of deleted buffers stay by uid, for the
 * shards still hold their items; about 2 KB a buffer that this node ever asked for.
 */

import { isIdentifier } from '../domain/identifiers.ts'
import type { BufferRecord } from '../domain/model.ts'
import type { Clock } from '../runtime/clock.ts'
import { createGatheredReads } from '../runtime/gathered-reads.ts'
import type { BufferRows } from './ports.ts'

export interface BufferCache {
  /** By uid, deleted ones too, without waiting. */
  peek(uid: string): BufferRecord | undefined
  /** By uid; undefined: no such row. Rejects while the database is away and the record is not here. */
  load(uid: string): Promise<BufferRecord | undefined>
  /** By id; undefined: unknown, deleted, or not here yet. */
  peekById(bufferId: string): BufferRecord | undefined
  /** By id; undefined: unknown or deleted. Rejects as `load`. */
  loadById(bufferId: string): Promise<BufferRecord | undefined>
  /** Takes a record that was just read or committed; an older version than the one held is ignored. */
  accept(record: BufferRecord): void
  /** Rows with these uids changed; resolves when those held here are read again, rejects when they cannot be. */
  changed(uids: readonly string[]): Promise<void>
  /** Anything may have changed, also backwards (a restored database): every record is read again. */
  reset(): Promise<void>
  /** Called after each change of a record; returns the unsubscriber. */
  onChange(listener: (record: BufferRecord) => void): () => void
}

export interface BufferCacheOptions {
  rows: BufferRows
  clock: Clock
}

export function createBufferCache({ rows, clock }: BufferCacheOptions): BufferCache {
  const byUid = new Map<string, BufferRecord>()
  const byId = new Map<string, BufferRecord>()
  const listeners = new Set<(record: BufferRecord) => void>()
  /** Records from before a reset: they give way to whatever is read. */
  let doubtful = new Set<string>()

  const identity = (record: BufferRecord): string => record.uid
  const uidReads = createGatheredReads({ read: rows.byUids, identity, keep: accept, clock })
  const idReads = createGatheredReads({ read: rows.byIds, identity, keep: accept, clock })

  function accept(record: BufferRecord): void {
    const held = byUid.get(record.uid)
    const outdated = held !== undefined && record.version <= held.version
    if (outdated && !doubtful.delete(record.uid)) return
    doubtful.delete(record.uid)
    byUid.set(record.uid, record)
    index(record)
    for (const listener of listeners) listener(record)
  }

  /** An id belongs to one buffer that is not deleted; of two, the one created later. */
  function index(record: BufferRecord): void {
    const { bufferId, createdAt } = record.buffer
    const holder = byId.get(bufferId)
    if (holder !== undefined && holder.uid !== record.uid && holder.buffer.createdAt > createdAt) return
    if (!record.deleted) byId.set(bufferId, record)
    else if (holder?.uid === record.uid) byId.delete(bufferId)
  }

  function drop(uid: string): void {
    const record = byUid.get(uid)
    byUid.delete(uid)
    if (record !== undefined && byId.get(record.buffer.bufferId) === record)
      byId.delete(record.buffer.bufferId)
  }

  async function reread(uids: readonly string[]): Promise<void> {
    await Promise.all(uids.map((uid) => uidReads.get(uid)))
  }

  return {
    peek: (uid) => byUid.get(uid),
    async load(uid) {
      if (!byUid.has(uid)) await uidReads.get(uid)
      // Not what was read: it may be outdated already.
      return byUid.get(uid)
    },
    peekById: (bufferId) => byId.get(bufferId),
    async loadById(bufferId) {
      // Text that is no id could spoil the statement that others share, and names nothing.
      if (!isIdentifier(bufferId)) return undefined
      if (!byId.has(bufferId)) await idReads.get(bufferId)
      return byId.get(bufferId)
    },
    accept,
    async changed(uids) {
      uidReads.changed(uids)
      idReads.changed(uids)
      await reread(uids.filter((uid) => byUid.has(uid)))
    },
    async reset() {
      uidReads.allChanged()
      idReads.allChanged()
      doubtful = new Set(byUid.keys())
      await reread([...doubtful])
      // What was not found again is not there any more.
      for (const uid of doubtful) drop(uid)
      doubtful.clear()
    },
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
