/** Groups by buffer and key: what an ingress hashes once and not for each item. */
import { groupToken, shardOf } from '../domain/group.ts'

export interface GroupName {
  /** `groupToken` of the domain. */
  readonly token: string
  readonly shard: number
}

/** Names that are kept, at most twice as many: some 200 bytes each. */
const GENERATION = 8_192

export class GroupNames {
  readonly #shards: number
  #young = new Map<string, GroupName>()
  #old = new Map<string, GroupName>()

  constructor(shards: number) {
    this.#shards = shards
  }

  /** `bufferUid`: a UUID. */
  of(bufferUid: string, groupKey: string): GroupName {
    // A UUID has a fixed length: two pairs never make the same text.
    const pair = bufferUid + groupKey
    const known = this.#young.get(pair) ?? this.#old.get(pair)
    if (known !== undefined) return known
    const token = groupToken(bufferUid, groupKey)
    const name = { token, shard: shardOf(token, this.#shards) }
    if (this.#young.size >= GENERATION) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(pair, name)
    return name
  }
}
