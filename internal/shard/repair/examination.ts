/** What is wrong with a shard, and what a repair would do about it. Changes nothing. */
import { createHash } from 'node:crypto'
import { PACK_ID_BYTES } from '../../domain/pack-id.ts'
import { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Log } from '../broker.ts'
import { faultOf } from '../claim/epoch.ts'
import { packIdOf } from '../claim/inbox-check.ts'
import { type JournalReading, readJournal, type ShardLogs } from '../claim/journal-reading.ts'
import type { Position } from '../journal/records.ts'
import type { FoldState } from '../journal/state.ts'
import type { Known } from '../ports.ts'
import { type InboxEvidence, itemIdsOf, weighInbox } from './evidence.ts'
import { completeCopy } from './journal-copy.ts'
import type { RepairOptions } from './ports.ts'

export interface JournalFindings {
  readonly known: Known
  /** Why it needs a repair; null: it does not. */
  readonly fault: string | null
  /** It has no beginning: what it held is in the copy of an interrupted repair, or lost. */
  readonly truncatedWithoutSnapshot: boolean
  /** A complete copy is there. */
  readonly copied: boolean
}

export interface InboxFindings extends InboxEvidence {
  /** Packs without items to be appended. */
  readonly fillers: number
  /** What stands above `proven` and up to `named`, to be appended once more. */
  readonly again: { readonly packs: number; readonly items: number }
  /** Sealed batches that miss items, with the number of these. */
  readonly broken: { readonly batches: number; readonly items: number }
}

export interface Findings {
  readonly shard: number
  readonly journal: JournalFindings
  /** null: nothing can be said, for the journal has no beginning; it is repaired after the inbox. */
  readonly inbox: InboxFindings | null
}

/** An owner commits a horizon before it purges: whoever lacks the one may lack seals behind it, too. */
const OUTLIVED = 'it may have lost its end, for the inbox was purged beyond what it says is over'
const RENEWED = 'versions above its end may be in use, as its caller says'

export function needsRepair({ journal, inbox }: Findings): boolean {
  return journal.fault !== null || (inbox !== null && inbox.fault !== null)
}

/** Rejects when broker or Postgres do not answer. */
export async function examine(options: RepairOptions): Promise<Findings> {
  const { broker, shard, clock, copies, remembered, renew = false } = options
  const journal = broker.journal(shard)
  const archive = new SnapshotArchive({ archive: broker.archive(shard), clock, writer: null })
  const { state, fault: missing, denied } = await readWhole({ journal, archive, clock })
  const truncatedWithoutSnapshot = missing !== null
  const copied = (await completeCopy(copies, shard)) !== undefined
  const known = await remembered.known(shard)
  const contradicted = truncatedWithoutSnapshot
    ? 'its beginning is gone'
    : await contradiction(journal, known)
  const inbox = truncatedWithoutSnapshot ? null : await examineInbox(broker.inbox(shard), journal, state)
  const outlived = inbox !== null && inbox.lostBelow !== null ? OUTLIVED : null
  const fault = contradicted ?? denied ?? outlived ?? (renew ? RENEWED : null)
  return { shard, journal: { known, fault, truncatedWithoutSnapshot, copied }, inbox }
}

/** The logs as they stand. A node may run the shard and purge meanwhile: the reading counts once the same is missing twice. */
export async function readWhole(logs: ShardLogs): Promise<JournalReading> {
  const read = async () => readJournal(logs, (await logs.journal.state()).lastSeq)
  const missing = ({ fault, denied }: JournalReading) => fault ?? denied
  let found = await read()
  for (let before: string | null = null; missing(found) !== before; ) {
    before = missing(found)
    found = await read()
  }
  return found
}

/** Between the journal and what Postgres knows of it; null: there is none. */
async function contradiction(journal: Log, { claim, counted }: Known): Promise<string | null> {
  const { lastSeq } = await journal.state()
  if (claim.seq > lastSeq) return `it ends at ${lastSeq}, Postgres knows the epoch ${claim.seq}`
  if (counted.seq > lastSeq) return `it ends at ${lastSeq}, Postgres has counted up to ${counted.seq}`
  return (await faultOf(journal, claim)) ?? (await faultOf(journal, counted))
}

async function examineInbox(inbox: Log, journal: Log, fold: FoldState): Promise<InboxFindings> {
  const { lastSeq } = await inbox.state()
  const evidence = await weighInbox(inbox, journal, fold)
  const { named, proven, fault } = evidence
  let [fillers, packs, items] = [0, 0, 0]
  if (fault !== null) {
    fillers = Math.max(0, named + 1 - lastSeq)
    for await (const pack of packsToRepeat(inbox, proven, named)) {
      packs++
      items += pack.items
    }
  }
  return { ...evidence, fillers, again: { packs, items }, broken: brokenBatches(fold, evidence) }
}

interface AmbiguousPack {
  readonly seq: number
  readonly packId: string
  /** Of the pack when it is appended once more. */
  readonly copyId: Buffer
  readonly items: number
  readonly data: Uint8Array
}

/** Packs above `proven` and up to `named` that hold items. */
export async function* ambiguousPacks(
  inbox: Log,
  proven: number,
  named: number,
): AsyncGenerator<AmbiguousPack> {
  for await (const message of inbox.range(proven + 1, named)) {
    const [packId, itemIds] = [packIdOf(message), itemIdsOf(message)]
    // What is no pack holds no item: it poisons the shard where it stands, or lies below the horizon.
    if (packId === undefined || itemIds === undefined) continue
    const { seq, data } = message
    if (itemIds.length > 0) yield { seq, packId, copyId: copyIdOf(packId), items: itemIds.length, data }
  }
}

/** Ambiguous packs of which no earlier run appended a copy above `named`. */
export async function* packsToRepeat(
  inbox: Log,
  proven: number,
  named: number,
): AsyncGenerator<AmbiguousPack> {
  const above = new Set<string | undefined>()
  for await (const message of inbox.range(named + 1, (await inbox.state()).lastSeq))
    above.add(packIdOf(message))
  for await (const pack of ambiguousPacks(inbox, proven, named))
    if (!above.has(pack.copyId.toString('base64url'))) yield pack
}

/**
 * The id of a pack that is appended once more: the same in each run, so that a run finds the copies of an earlier one.
 * Not the pack's own, or owners would refuse it as a pack that they have seen.
 */
function copyIdOf(packId: string): Buffer {
  return createHash('sha256').update(packId).digest().subarray(0, PACK_ID_BYTES)
}

/** Whether an item is gone: its message is, and no keep holds it. */
export function isLost(
  { seq, index }: Position,
  { fault, proven, lostBelow }: InboxEvidence,
  { kept }: FoldState,
): boolean {
  return (seq < (lostBelow ?? 0) || (fault !== null && seq > proven)) && !kept.has(seq, index)
}

/** Open batches with a lost item. */
function brokenBatches(fold: FoldState, evidence: InboxEvidence): { batches: number; items: number } {
  let [batches, items] = [0, 0]
  for (const { seal } of fold.batches.values()) {
    const missing = seal.positions.filter((each) => isLost(each, evidence, fold))
    if (missing.length > 0) batches++
    items += missing.length
  }
  return { batches, items }
}
