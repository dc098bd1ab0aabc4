/**
 * Configuration of buffers in memory, by internal uid for the shards and by caller-chosen id for ingest
 * (docs/architecture/protocol.md, "Cached configuration"). A record is as new as the change feed allows: what this
 * node commits is seen at once, what others commit within the feed's delay.
 *
 * Invariants: a record never gives way to an older version of itself; that an id is unknown is never
 * remembered, so what was just created works everywhere. By id nothing is answered that is known to have changed, or
 * that may have changed longer ago than a minute: then Postgres is asked. Of a deleted buffer the record stays only
 * while a shard here still holds items of it; of all others no more than the version, or whoever creates and deletes
 * without end would fill the memory.
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
  /** By uid, without waiting; deleted ones that a shard holds, too. */
  peek(uid: string): BufferRecord | undefined
  /**
   * By uid, deleted ones too; undefined: no such row, or it was deleted while it was read. Rejects while the database is
   * away and the record is not here.
   */
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
  /** Called after each change of a record; returns the unsubscriber. `holds`: whose records stay when they are deleted. */
  onChange(listener: (record: BufferRecord) => void, holds?: (uid: string) => boolean): () => void
}

export interface BufferCacheOptions {
  rows: BufferRows
  clock: Clock
}

/** So many deleted records are here before those that nobody holds any more are looked for. */
const SWEEP_FROM = 100
/** Versions of deleted buffers that are known at least: more than are deleted while a read from before is under way. */
const VERSIONS_KEPT = 10_000

export function createBufferCache({ rows, clock }: BufferCacheOptions): BufferCache {
  const byUid = new Map<string, BufferRecord>()
  /** What ingest is answered. */
  const byId = new Map<string, BufferRecord>()
  const listeners = new Map<(record: BufferRecord) => void, (uid: string) => boolean>()
  /** Those of `byUid` that are deleted. */
  const deleted = new Set<string>()
  let sweepAt = SWEEP_FROM
  /** Of buffers that were deleted last: nothing that was read earlier takes their places. */
  let lastVersions = new Generations<string, number>(VERSIONS_KEPT)
  const freshness = createFreshness(clock)
  /** Records from before a reset: they give way to whatever is read. */
  let doubtful = new Set<string>()

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
    if (isOutdated(record) && !doubtful.delete(record.uid)) return
    doubtful.delete(record.uid)
    const isKnown = !byUid.has(record.uid) && lastVersions.get(record.uid) === record.version
    hold(record)
    index(record)
    // Whoever reads a deleted buffer again hears of it as the answer.
    if (isKnown) return
    for (const listener of listeners.keys()) listener(record)
  }

  function isOutdated({ uid, version }: BufferRecord): boolean {
    const held = byUid.get(uid)
    return held === undefined ? version < (lastVersions.get(uid) ?? 0) : version <= held.version
  }

  function hold(record: BufferRecord): void {
    const { uid, version } = record
    if (record.deleted) lastVersions.set(uid, version)
    if (record.deleted && !isHeld(uid)) byUid.delete(uid)
    else byUid.set(uid, record)
    if (record.deleted && byUid.has(uid)) deleted.add(uid)
    else deleted.delete(uid)
    if (deleted.size >= sweepAt) sweep()
  }

  function isHeld(uid: string): boolean {
    return listeners.values().some((holds) => holds(uid))
  }

  function sweep(): void {
    for (const uid of deleted) {
      if (isHeld(uid)) continue
      deleted.delete(uid)
      doubtful.delete(uid)
      byUid.delete(uid)
    }
    sweepAt = Math.max(SWEEP_FROM, 2 * deleted.size)
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
    deleted.delete(record.uid)
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

  async function load(uid: string): Promise<BufferRecord | undefined> {
    if (byUid.has(uid)) return byUid.get(uid)
    const read = await uidReads.get(uid)
    // What was read may be outdated already. A deleted buffer that no shard holds is told, and not kept.
    return byUid.get(uid) ?? (read?.deleted ? read : undefined)
  }

  return {
    peek: (uid) => byUid.get(uid),
    load,
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
      lastVersions = new Generations(VERSIONS_KEPT)
      doubtful = new Set(byUid.keys())
      await reread([...byUid.values()])
    },
    caughtUp: freshness.caughtUp,
    onChange(listener, holds = () => false) {
      listeners.set(listener, holds)
      return () => listeners.delete(listener)
    },
  }
}
