/**
 * Carries the oldest kept items forward in the journal (docs/architecture/protocol.md, "Housekeeping"): a journal is cut behind the oldest
 * commit that still holds one. Whole commits go, so that the cut behind them gives back what carrying took.
 */

import type { LogState } from '../broker.ts'
import type { LiveItem } from '../held/live.ts'
import { decodeCommit } from '../journal/codec.ts'
import { keptItems } from '../journal/records.ts'
import { slicesOf } from '../journal/slices.ts'
import type { Cut } from './cut.ts'
import { CROWDED_RATIO, keepBytesOf, keepLive } from './keeping.ts'
import { isCrowded } from './limits.ts'
import type { HousekeepingOwner } from './owner.ts'

export interface CarryingOptions extends HousekeepingOwner {
  readonly cut: Cut
}

/** The live items of some commits, with their bytes. */
interface Load {
  readonly copies: Map<LiveItem, Buffer>
  bytes: number
}

export class Carrying {
  readonly #options: CarryingOptions

  constructor(options: CarryingOptions) {
    this.#options = options
  }

  /** Where that is due: what holds the journal below the newest snapshot, in its older half. */
  async step(): Promise<void> {
    const { journalLog, journal, state, live, cut, stopped } = this.#options
    const snapshot = cut.snapshot?.name.seq ?? 0
    if (state.kept.oldestCommit >= snapshot) return
    const log = await journalLog.state()
    if (!this.#isDue(log)) return
    const most = keepBytesOf(log.maxBytes)
    const limit = Math.min(snapshot, (log.firstSeq + log.lastSeq) / 2)
    while (state.kept.oldestCommit < limit && !stopped()) {
      const load = await this.#load(limit, most)
      if (journal.left('carrying') < load.bytes) return
      for (const chunk of slicesOf(load.copies.keys(), most, ({ size }) => size))
        await keepLive(chunk, load.copies, live, (record, kept) => journal.carry(record, kept))
    }
  }

  #isDue(log: LogState): boolean {
    const { live, limits } = this.#options
    const over = log.bytes - live.keptBytes
    if (over > Math.max(limits.keepBytes, limits.keepRatio * live.keptBytes)) return true
    return over > CROWDED_RATIO * live.keptBytes && isCrowded(log, limits)
  }

  /** Of the oldest commits below `limit`, as many as one keep holds, at least one. */
  async #load(limit: number, most: number): Promise<Load> {
    const load: Load = { copies: new Map(), bytes: 0 }
    for (const commit of this.#options.state.kept.commits()) {
      if (commit >= limit) break
      const found = await this.#itemsOf(commit)
      if (load.bytes > 0 && load.bytes + found.bytes > most) break
      for (const [item, bytes] of found.copies) load.copies.set(item, bytes)
      load.bytes += found.bytes
    }
    return load
  }

  async #itemsOf(commit: number): Promise<Load> {
    const { payloads, live, state } = this.#options
    const data = await payloads.read('journal', commit, () => state.kept.holds(commit))
    const load: Load = { copies: new Map(), bytes: 0 }
    for (const { position, item: bytes } of data ? keptItems(decodeCommit(data)) : []) {
      const item = live.get(position)
      if (item?.message.source !== 'journal' || item.message.seq !== commit) continue
      load.copies.set(item, Buffer.from(bytes))
      load.bytes += item.size
    }
    return load
  }
}
