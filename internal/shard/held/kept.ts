/** Kept items where they stand: in the keep record of a journal commit. */
import { decodeCommit } from '../journal/codec.ts'
import type { Position } from '../journal/records.ts'

interface KeptPlace {
  readonly position: Position
  /** Of the encoded item in the commit's bytes. */
  readonly offset: number
}

/** The kept items of a commit by their ordinals; empty when it has no keep record. */
export function keptPlaces(data: Uint8Array): KeptPlace[] {
  const keep = decodeCommit(data).records.find((record) => record.type === 'keep')
  return (
    keep?.items.map(({ position, item }) => ({ position, offset: item.byteOffset - data.byteOffset })) ?? []
  )
}
