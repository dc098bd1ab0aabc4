/**
 * How far the inbox still holds what the journal means by its positions (docs/architecture/repair.md, "What it
 * examines"). Reads only.
 *
 * Invariant: a lost tail is a suffix and later messages stand above it, so what is proven of one position holds for
 * all below it.
 */
import { createHash } from 'node:crypto'
import { decodePack, readItem } from '../../domain/pack.ts'
import type { Log, LogMessage, LogState } from '../broker.ts'
import { lostBelow, packIdOf } from '../claim/inbox-check.ts'
import { decodeCommit } from '../journal/codec.ts'
import type { HighWater, JournalRecord, Position, SealRecord } from '../journal/records.ts'
import { type FoldState, highestNamed } from '../journal/state.ts'

export interface InboxEvidence {
  /** Highest inbox sequence that the fold names; 0: none. */
  readonly named: number
  /** Highest one that is proven to hold what the journal means; 0: none. */
  readonly proven: number
  /** Why the inbox does not end as it should; null: it does. */
  readonly fault: string | null
  /** Its first message, when what stood below was not over; null: it begins as it should. */
  readonly lostBelow: number | null
}

/** What the journal says of items, and the highest sequence that it says it of. */
interface Statement {
  readonly top: number
  readonly positions: readonly Position[]
  readonly holds: (itemIds: readonly string[]) => boolean
}

export async function weighInbox(inbox: Log, journal: Log, fold: FoldState): Promise<InboxEvidence> {
  const state = await inbox.state()
  const named = highestNamed(fold)
  const { marks, statements } = await readStatements(journal, fold, state.firstSeq)
  const marked = await highestMark(inbox, state, marks)
  const unmarked = statements.filter(({ top }) => top > marked)
  const { proven, contradicted } = await highestProven(inbox, state, unmarked)
  const mark = await inspectMark(inbox, state, fold.highWater)
  let fault: string | null = null
  if (named > state.lastSeq) fault = `it ends at ${state.lastSeq}, the journal names ${named}`
  else if (mark === 'gone') fault = `message ${fold.highWater?.seq} is not what an owner saw there`
  else if (contradicted !== null) fault = `message ${contradicted} does not hold what the journal says`
  return { named, proven: Math.max(marked, proven), fault, lostBelow: lostBelow(state, fold) }
}

/** What the journal says of messages from `from` on, and every high-water mark that it holds; both highest first. */
async function readStatements(
  journal: Log,
  fold: FoldState,
  from: number,
): Promise<{ marks: HighWater[]; statements: Statement[] }> {
  const marks = fold.highWater ? [fold.highWater] : []
  const above = (records: readonly JournalRecord[]) =>
    records.flatMap(statementsOf).filter(({ top }) => top >= from)
  const statements = above([...fold.batches.values()].map(({ seal }) => seal))
  const { firstSeq, lastSeq } = await journal.state()
  for await (const { data } of journal.range(firstSeq, lastSeq)) {
    const { highWater, records } = decodeCommit(data)
    if (highWater && highWater.seq !== marks.at(-1)?.seq) marks.push(highWater)
    statements.push(...above(records))
  }
  return { marks: marks.sort((a, b) => b.seq - a.seq), statements: statements.sort((a, b) => b.top - a.top) }
}

/** 0: none of them. */
async function highestMark(inbox: Log, state: LogState, marks: readonly HighWater[]): Promise<number> {
  for (const mark of marks) if ((await inspectMark(inbox, state, mark)) === 'there') return mark.seq
  return 0
}

async function inspectMark(
  inbox: Log,
  { firstSeq, lastSeq }: LogState,
  mark: HighWater | null,
): Promise<'there' | 'purged' | 'gone'> {
  if (mark === null || (mark.seq < firstSeq && mark.seq <= lastSeq)) return 'purged'
  const message = mark.seq <= lastSeq ? await inbox.get(mark.seq) : undefined
  return message && packIdOf(message) === mark.packId ? 'there' : 'gone'
}

function statementsOf(record: JournalRecord): Statement[] {
  if (record.type === 'seal') return [statementOfSeal(record)]
  if (record.type === 'drop') return [statementOfItem(record.position, record.itemId)]
  if (record.type !== 'keep') return []
  return record.items.map(({ position, item }) => statementOfItem(position, readItem(item, 0).itemId))
}

function statementOfItem(position: Position, itemId: string): Statement {
  return { top: position.seq, positions: [position], holds: ([found]) => found === itemId }
}

function statementOfSeal({ positions, itemsHash }: SealRecord): Statement {
  const top = positions.reduce((highest, { seq }) => Math.max(highest, seq), 0)
  return { top, positions, holds: (itemIds) => Buffer.compare(hashOf(itemIds), itemsHash) === 0 }
}

/** As a seal has it: the first 16 bytes of SHA-256 over the item ids in order. */
function hashOf(itemIds: readonly string[]): Buffer {
  const ids = createHash('sha256')
  for (const itemId of itemIds) ids.update(itemId)
  return ids.digest().subarray(0, 16)
}

/** `statements`: highest first; the first that holds proves all below it. */
async function highestProven(
  inbox: Log,
  state: LogState,
  statements: readonly Statement[],
): Promise<{ proven: number; contradicted: number | null }> {
  const packs = new Map<number, string[] | undefined>()
  let contradicted: number | null = null
  for (const { top, positions, holds } of statements) {
    for (const { seq } of positions) if (!packs.has(seq)) packs.set(seq, await itemIdsAt(inbox, state, seq))
    if (positions.some(({ seq }) => packs.get(seq) === undefined)) continue
    const itemIds = positions.map(({ seq, index }) => packs.get(seq)?.[index] ?? '')
    if (holds(itemIds)) return { proven: top, contradicted }
    contradicted = top
  }
  return { proven: 0, contradicted }
}

/** undefined: nothing is there, or no pack. */
async function itemIdsAt(
  inbox: Log,
  { firstSeq, lastSeq }: LogState,
  seq: number,
): Promise<string[] | undefined> {
  const message = seq >= firstSeq && seq <= lastSeq ? await inbox.get(seq) : undefined
  return message && itemIdsOf(message)
}

export function itemIdsOf({ data }: LogMessage): string[] | undefined {
  const itemIds: string[] = []
  try {
    decodePack(data, (view) => itemIds.push(view.itemId))
  } catch {
    return undefined
  }
  return itemIds
}
