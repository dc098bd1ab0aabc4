/** Kept items where they stand: in the keep record of a journal commit. */
import { decodeCommit } from '../journal/codec.ts'
import type { Position } from '../journal/records.ts'

export interface KeptPlace {
  readonly position: Position
  /** The broker's time of the pack, Unix ms. */
  readonly at: number
  /** Of the encoded item in the commit's bytes. */
  readonly offset: number
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
