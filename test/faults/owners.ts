/**
 * Who owned which shard when, as the journals tell it: an excuse for what an owner did wrong must be a fault of that
 * owner.
 */
import type { History, StoredCommit } from './history.ts'

/** An owner that let go may finish attempts for 12 s more; the rest is for a busy machine, ms. */
const HAND_OVER_MS = 15_000

interface Span {
  readonly epoch: number
  readonly from: number
  /** When the next one claimed the shard. */
  readonly to: number
  /** undefined: it did not live to say that the shard is its own. */
  readonly node: string | undefined
}

export class Owners {
  readonly #spans: ReadonlyMap<number, readonly Span[]>
  /** First sequence that the journal of a shard still had. */
  readonly #begins: ReadonlyMap<number, number>

  constructor({ commits, claims }: Pick<History, 'commits' | 'claims'>) {
    const ofShards = Map.groupBy(commits, ({ shard }) => shard)
    const nodes = nodesOfBoots(commits, claims)
    this.#spans = new Map([...ofShards].map(([shard, own]) => [shard, spansOf(own, nodes)]))
    this.#begins = new Map([...ofShards].map(([shard, own]) => [shard, own[0]!.seq]))
  }

  /**
   * How often the shard was claimed behind this sequence of its journal and until `at`; undefined: its journal does not
   * reach back so far.
   */
  claimsSince(shard: number, seq: number, at: number): number | undefined {
    const begin = this.#begins.get(shard)
    if (begin === undefined || begin > seq + 1) return undefined
    return this.#spans.get(shard)!.filter(({ epoch, from }) => epoch > seq && from <= at).length
  }

  /** Whether somebody claimed the shard between these times; true when nobody knows. */
  mayHaveChanged(shard: number, from: number, to: number): boolean {
    const spans = this.#spans.get(shard)
    if (!spans || spans.length === 0 || from < spans[0]!.from) return true
    return spans.some((span) => span.from >= from && span.from <= to)
  }

  /** Whether the node had the shard between these times, or attempts from then under way; true when nobody knows. */
  mayHaveHad(node: string, shard: number, from: number, to: number): boolean {
    const spans = this.#spans.get(shard)
    if (!spans || spans.length === 0 || from < spans[0]!.from) return true
    return spans.some(
      (span) =>
        span.from <= to && span.to + HAND_OVER_MS >= from && (span.node === undefined || span.node === node),
    )
  }
}

function nodesOfBoots(commits: History['commits'], claims: History['claims']): Map<string, string> {
  const boots = new Map(commits.map(({ shard, seq, boot }) => [`${shard}/${seq}`, boot]))
  return new Map(
    claims.flatMap(({ shard, epoch, node }) => {
      const boot = boots.get(`${shard}/${epoch}`)
      return boot === undefined ? [] : [[boot, node]]
    }),
  )
}

function spansOf(commits: readonly StoredCommit[], nodes: ReadonlyMap<string, string>): Span[] {
  const claims = commits.filter(({ records }) => records.includes('epoch'))
  return claims.map(({ seq, at, boot }, index) => ({
    epoch: seq,
    from: at,
    to: claims[index + 1]?.at ?? Number.POSITIVE_INFINITY,
    node: nodes.get(boot),
  }))
}
