/** Carrying live items into the journal, payload and all, sorted by group (design, section 4: `keep`). */
import { Frame, type Frames } from './frames.ts'
import type { Journal } from './journal.ts'
import { keptPlaces } from './kept.ts'
import type { LiveItem, LiveItems } from './live.ts'

/** Encoded items in one keep record, bytes; one larger item goes alone. */
const KEEP_BYTES = 256 * 1024

export interface KeepInto {
  readonly frames: Frames
  readonly journal: Journal
  readonly live: LiveItems
  readonly stopped: () => boolean
}

/** Items of the inbox below `until`. */
export function laggingItems(inInbox: Iterable<LiveItem>, until: number): LiveItem[] {
  const items: LiveItem[] = []
  for (const item of inInbox) if (item.seq < until) items.push(item)
  return items
}

/** The first of them that fit `room` bytes. */
export function fitting(items: readonly LiveItem[], room: number): LiveItem[] {
  let count = 0
  for (let left = room; count < items.length; count++) {
    left -= items[count]!.size
    if (left < 0) break
  }
  return items.slice(0, count)
}

/** One record after the other, so that seals pass between them. Resolves when all are committed, or stopped. */
export async function carry(items: LiveItem[], into: KeepInto): Promise<void> {
  items.sort((a, b) =>
    a.group.id < b.group.id ? -1 : a.group.id > b.group.id ? 1 : a.seq - b.seq || a.index - b.index,
  )
  let chunk: LiveItem[] = []
  let bytes = 0
  for (const item of items) {
    if (chunk.length > 0 && bytes + item.size > KEEP_BYTES) {
      await carryChunk(chunk, into)
      chunk = []
      bytes = 0
    }
    if (into.stopped()) return
    chunk.push(item)
    bytes += item.size
  }
  if (chunk.length > 0) await carryChunk(chunk, into)
}

async function carryChunk(chunk: LiveItem[], { frames, journal, live }: KeepInto): Promise<void> {
  const items = chunk.filter((item) => live.get(item) === item)
  if (items.length === 0) return
  await frames.with(items, (data) => {
    const kept = items.map((item) => ({
      position: { seq: item.seq, index: item.index },
      at: item.at,
      item: data(item.frame).subarray(item.offset, item.offset + item.size),
    }))
    return journal.commit({ type: 'keep', items: kept }, (seq, _applied, bytes) => {
      moveTo(new Frame('journal', seq), bytes, items, live, frames)
    })
  })
}

function moveTo(frame: Frame, bytes: Buffer, items: LiveItem[], live: LiveItems, frames: Frames): void {
  keptPlaces(bytes).forEach(({ offset }, ordinal) => {
    const item = items[ordinal]!
    if (live.get(item) === item) live.move(item, frame, offset)
  })
  frames.offer(frame, bytes)
}
