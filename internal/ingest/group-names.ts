/** Groups by buffer and key: what an ingress hashes once and not for each item. */
import { groupToken, shardOf } from '../domain/group.ts'
import { Generations } from '../runtime/generations.ts'

export interface GroupName {
  /** `groupToken` of the domain. */
  readonly token: string
  readonly shard: number
}

/** Names that are kept, at most twice as many: some 200 bytes each. */
const KEPT = 8_192

export class GroupNames {
  readonly #shards: number
  readonly #names = new Generations<string, GroupName>(KEPT)

  constructor(shards: number) {
    this.#shards = shards
  }

  /** `bufferUid`: a UUID. */
  of(bufferUid: string, groupKey: string): GroupName {
    // A UUID has a fixed length: two pairs never make the same text.
    const pair = bufferUid + groupKey
    const known = this.#names.get(pair)
    if (known !== undefined) return known
    const token = groupToken(bufferUid, groupKey)
    const name = { token, shard: shardOf(token, this.#shards) }
    this.#names.set(pair, name)
    return name
  }
}
