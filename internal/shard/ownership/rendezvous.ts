/**
 * How much a node and a shard suit each other (docs/architecture/protocol.md, "Placement"): the same number wherever
 * it is asked for, so nodes agree without talking. Among any members, each is the heaviest of an equal part of the
 * shards.
 */
import { hash } from 'node:crypto'

/** What a weight takes from a boot: 64 bits. */
export interface RendezvousSeed {
  readonly high: number
  readonly low: number
}

/** Steps the shard's number over all 32 bits; odd, so no two numbers meet. */
const STRIDE = 0x9e3779b1
/** A weight has 53 bits, the whole numbers of a double: 32 of one hash above 21 of another. */
const LOW_BITS = 21

/** One SHA-256; equal boots have equal seeds. */
export function rendezvousSeed(boot: string): RendezvousSeed {
  const bytes = hash('sha256', boot, 'buffer')
  return { high: bytes.readUInt32LE(0), low: bytes.readUInt32LE(4) }
}

/** Whole number of 0 to 2^53 - 1. `shard` is a number of 0 to 2^32 - 1. */
export function rendezvousWeight(seed: RendezvousSeed, shard: number): number {
  const step = Math.imul(shard, STRIDE)
  return mixed(seed.high ^ step) * 2 ** LOW_BITS + (mixed(seed.low ^ step) >>> (32 - LOW_BITS))
}

/** The finalizer of MurmurHash3: each bit of the input turns each bit of the answer with even chances. */
function mixed(input: number): number {
  let bits = Math.imul(input ^ (input >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
