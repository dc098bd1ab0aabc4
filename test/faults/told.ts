/**
 * Which terms of a buffer may be in force where and when. Nodes hear of a change from the database, in the order of
 * all changes; how soon is up to the machine, so it is judged by what they do: an owner that signs with a secret knows
 * everything that was changed before that secret was.
 */
import { shardOfKey } from './batch-key.ts'
import { endsAll, hidesChanges } from './causes.ts'
import type { Delivery, Fault, History, Shape } from './history.ts'
import type { Owners } from './owners.ts'
import type { BufferChange, BufferTerms } from './terms.ts'

/** From an attempt's begin to its arrival, on a busy machine, ms: but for those that arrive late (`evidence.ts`). */
export const ON_THE_WAY_MS = 3_000
/**
 * From the answer to a change until no attempt that begins without it arrives, ms. One process knows a change before it
 * answers. Several know it within a second (docs/reference/guarantees.md, "Limits"), and a busy machine takes the rest. The
 * nodes of a cluster are cut off, too.
 */
const KNOWN_MS: Readonly<Record<Shape, number>> = {
  'one process': ON_THE_WAY_MS,
  'several processes': 10_000,
  cluster: 30_000,
}

/** An attempt was signed with a secret that was asked for at `askedAt`. */
interface Sign {
  readonly at: number
  readonly askedAt: number
}

/** What else it takes to judge a time. */
export interface Circumstances {
  readonly owners: Owners
  readonly faultsBetween: (from: number, to: number) => Fault[]
  readonly stalledMs: (from: number, to: number) => number
}

export class Told {
  readonly #circumstances: Circumstances
  readonly #changes: ReadonlyMap<string, BufferChange[]>
  readonly #signs: ReadonlyMap<number | undefined, Sign[]>
  readonly #knownMs: number

  constructor(history: History, circumstances: Circumstances) {
    this.#circumstances = circumstances
    this.#changes = Map.groupBy(history.changes, ({ bufferId }) => bufferId)
    this.#signs = signsOf(history)
    this.#knownMs = KNOWN_MS[history.shape]
  }

  /** Terms of which one was in force for an attempt that came at `at` from the owner of this shard; none: no such buffer. */
  at(bufferId: string, at: number, shard: number | undefined): BufferTerms[] {
    const isKnown = (answeredAt: number) =>
      this.#isKnownAnywhere(answeredAt, at) || this.#isKnownToOwner(answeredAt, at, shard)
    return this.#inForce(bufferId, at, isKnown).map(({ terms }) => terms)
  }

  /** Terms of which one was in force at any time from `from` on until `to`. */
  between(bufferId: string, from: number, to: number): BufferTerms[] {
    const before = this.#inForce(bufferId, from, (answeredAt) => this.#isKnownAnywhere(answeredAt, from))
    const since = this.#asked(bufferId, to).filter(({ askedAt }) => askedAt > from)
    return [...before, ...since].map(({ terms }) => terms)
  }

  /** Terms that the buffer ever had until `at`: a batch may have been sealed long before. */
  until(bufferId: string, at: number): BufferTerms[] {
    return this.#asked(bufferId, at).map(({ terms }) => terms)
  }

  #asked(bufferId: string, at: number): BufferChange[] {
    return (this.#changes.get(bufferId) ?? []).filter(({ askedAt }) => askedAt <= at)
  }

  /** The last change that was surely known, and all that were asked for since. */
  #inForce(bufferId: string, at: number, isKnown: (answeredAt: number) => boolean): BufferChange[] {
    const asked = this.#asked(bufferId, at)
    const known = asked.findLastIndex(({ answeredAt }) => answeredAt !== null && isKnown(answeredAt))
    return asked.slice(Math.max(0, known))
  }

  #isKnownAnywhere(answeredAt: number, at: number): boolean {
    const { faultsBetween, stalledMs } = this.#circumstances
    if (answeredAt > at) return false
    const faults = faultsBetween(answeredAt, at)
    const hidden = faults.filter(hidesChanges)
    const from = Math.max(answeredAt, ...hidden.map(({ to }) => to))
    // Processes that began behind the change have read it.
    const begun = faults.filter((fault) => endsAll(fault) && fault.from >= from).map(({ to }) => to)
    const known = Math.min(from + this.#knownMs, ...begun.map((to) => to + ON_THE_WAY_MS))
    return known + stalledMs(from, at) <= at
  }

  /** It signed with a younger secret, and has had the shard since then. */
  #isKnownToOwner(answeredAt: number, at: number, shard: number | undefined): boolean {
    const { owners, stalledMs, faultsBetween } = this.#circumstances
    if (shard === undefined) return false
    const sign = this.#signs
      .get(shard)
      ?.findLast((each) => each.askedAt > answeredAt && each.at + ON_THE_WAY_MS <= at)
    if (!sign) return false
    const from = sign.at - ON_THE_WAY_MS
    const held = faultsBetween(from, at).some(({ heldUntil }) => heldUntil !== undefined)
    const late = sign.at + ON_THE_WAY_MS + stalledMs(from, at)
    return !held && late <= at && !owners.mayHaveChanged(shard, from, at)
  }
}

/** Of each shard, in the order of arrival. */
function signsOf({ changes, deliveries, shards }: History): Map<number | undefined, Sign[]> {
  const since = new Map(changes.toReversed().map(({ terms, askedAt }) => [terms.signing?.secret, askedAt]))
  const signed = deliveries.filter(({ signature }) => signature?.secret)
  const ofShards = Map.groupBy(signed, ({ key }) => shardOfKey(key, shards))
  const signOf = ({ at, signature }: Delivery) => ({ at, askedAt: since.get(signature!.secret!) ?? 0 })
  return new Map([...ofShards].map(([shard, own]) => [shard, own.map(signOf)]))
}
