/** What waits for one shard, and the next pack of it. Pure. */
import type { PackItem } from '../domain/pack.ts'
import type { Stored } from './ports.ts'

/** An item and the request that waits for it. */
export interface Entry {
  readonly item: PackItem
  /** What it takes of a pack, at most. */
  readonly bytes: number
  /** Monotonic ms. */
  readonly since: number
  readonly resolve: (stored: Stored) => void
  readonly reject: (error: unknown) => void
}

export class ShardQueue {
  readonly shard: number
  /** An append of this shard is in flight: what arrives forms the next pack. */
  flying = false
  #queue: Entry[] = []

  constructor(shard: number) {
    this.shard = shard
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0
  }

  push(entry: Entry): void {
    this.#queue.push(entry)
  }

  /** The oldest entries that fit `maxBytes`, at least one. */
  takePack(maxBytes: number): Entry[] {
    let sum = 0
    let count = 0
    for (const { bytes } of this.#queue) {
      sum += bytes
      if (count > 0 && sum > maxBytes) break
      count++
    }
    return this.#queue.splice(0, count)
  }
}
