/** Kept items where they stand: in the keep record of a journal commit. */
import type { Log } from '../broker.ts'
import { decodeCommit } from '../journal/codec.ts'
import type { KeptAt } from '../journal/kept-places.ts'
import type { Position } from '../journal/records.ts'
import type { FoldState } from '../journal/state.ts'

interface KeptPlace {
  readonly position: Position
  /** The broker's time of the pack, Unix ms. */
  readonly at: number
  /** Of the encoded item in the commit's bytes. */
  readonly offset: number
}

/** A live item that stands in the journal, with the bytes of its commit. */
export interface KeptEntry extends KeptPlace {
  readonly data: Uint8Array
}

/** The kept items of a commit by their ordinals; empty when it has no keep record. */
export function keptPlaces(data: Uint8Array): KeptPlace[] {
  const keep = decodeCommit(data).records.find((record) => record.type === 'keep')
  if (!keep) return []
  return keep.items.map(({ position, at, item }) => ({
    position,
    at,
    offset: item.byteOffset - data.byteOffset,
  }))
}

/** For a repair, which copies them: all kept items of the state with their payloads, in ascending order of their positions. Rejects when a named commit is gone. */
export async function readKept(journal: Log, state: FoldState): Promise<KeptEntry[]> {
  const commits = new Map<number, { data: Uint8Array; places: KeptPlace[] }>()
  for (const { commit } of state.kept.values()) {
    if (commits.has(commit)) continue
    const message = await journal.get(commit)
    if (!message) throw new Error(`journal commit ${commit} holds kept items and is gone`)
    commits.set(commit, { data: message.data, places: keptPlaces(message.data) })
  }
  return [...state.kept.sorted()].map(([position, at]) => entryOf(position, at, commits.get(at.commit)!))
}

function entryOf(
  position: Position,
  { commit, ordinal }: KeptAt,
  from: { data: Uint8Array; places: KeptPlace[] },
): KeptEntry {
  const place = from.places[ordinal]
  if (!place || place.position.seq !== position.seq || place.position.index !== position.index) {
    throw new Error(`journal commit ${commit} does not hold the kept item ${position.seq}/${position.index}`)
  }
  return { ...place, data: from.data }
}
