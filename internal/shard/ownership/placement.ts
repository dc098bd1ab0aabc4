/**
 * Which node should run which shard (docs/architecture/protocol.md, "Placement"): rendezvous hashing that starts from
 * what runs already. Afterwards no member has two shards more than another, so none is above the load cap of
 * ceil(1.25·S/N), and nothing has moved that this did not ask for.
 *
 * A plan that is half carried out is planned again just the same, in whatever order its shards were let go and
 * taken. That is why each choice below rests only on what the steps of the plan itself leave as it is: who may
 * have one shard more on the order of boots, what a member gives up on its own weights, and who takes a shard on
 * that shard's weights, in the order of shards.
 */
import { type RendezvousSeed, rendezvousSeed, rendezvousWeight } from './rendezvous.ts'

/** A live node, as its lease tells. */
export interface PlacedMember {
  /** UUID of the node's start. */
  readonly boot: string
  /** Numbers of the shards that it runs now, in any order. */
  readonly shards: readonly number[]
}

interface Candidate {
  readonly boot: string
  readonly seed: RendezvousSeed
  /** What it has, as far as the plan has come. */
  shards: number[]
}

/** What is left to give: each member gets `floor` shards, and `extras` of them one more. */
interface Shares {
  readonly floor: number
  extras: number
}

/**
 * Who should run each shard: index = shard, value = boot of a member, null only when there is no member. Pure,
 * total, and the same for every order of its inputs. With S = `shards` (a whole number, 0 or more) and N members:
 *
 * - each member gets floor(S/N) shards or one more;
 * - a shard that one member runs stays there unless that member has more than its share, and no plan with these
 *   loads moves fewer of them; a member gives up the shards for which it is the lightest;
 * - of several members that run a shard, the one with the highest rendezvous weight counts as the one;
 * - a shard that nobody has goes, in the order of shards, to the member with the highest weight among those with
 *   less than their share.
 *
 * Numbers outside 0 to S - 1 and repetitions count for nothing; two members of one boot are one member.
 */
export function placeShards(shards: number, members: readonly PlacedMember[]): (string | null)[] {
  const candidates = candidatesOf(members)
  const holders = holdersOf(shards, members, candidates)
  for (const [shard, holder] of holders.entries()) holder?.shards.push(shard)
  const inOrder = [...candidates.values()].sort((a, b) => (a.boot < b.boot ? -1 : 1))
  if (inOrder.length > 0) level(holders, inOrder)
  return holders.map((holder) => holder?.boot ?? null)
}

function candidatesOf(members: readonly PlacedMember[]): Map<string, Candidate> {
  return new Map(members.map(({ boot }) => [boot, { boot, seed: rendezvousSeed(boot), shards: [] }]))
}

/** Who has each shard now. */
function holdersOf(
  shards: number,
  members: readonly PlacedMember[],
  candidates: ReadonlyMap<string, Candidate>,
): (Candidate | null)[] {
  const holders: (Candidate | null)[] = Array.from({ length: shards }, () => null)
  for (const { boot, shards: running } of members) {
    const candidate = candidates.get(boot)!
    for (const shard of running) {
      const other = holders[shard]
      if (other === undefined || other === candidate) continue
      holders[shard] = other === null ? candidate : heavier(candidate, other, shard)
    }
  }
  return holders
}

function heavier(one: Candidate, other: Candidate, shard: number): Candidate {
  const difference = rendezvousWeight(one.seed, shard) - rendezvousWeight(other.seed, shard)
  if (difference === 0) return one.boot < other.boot ? one : other
  return difference > 0 ? one : other
}

/** Takes from those with too many and gives to those with too few. */
function level(holders: (Candidate | null)[], candidates: readonly Candidate[]): void {
  const floor = Math.floor(holders.length / candidates.length)
  const shares: Shares = { floor, extras: holders.length - floor * candidates.length }
  for (const candidate of candidates) {
    for (const shard of givenUp(candidate, shares)) holders[shard] = null
  }
  for (const [shard, holder] of holders.entries()) {
    if (holder === null) holders[shard] = taker(shard, candidates, shares)
  }
}

/** One shard above the floor stays where it is for as long as that may be: each such saves a move. */
function givenUp(candidate: Candidate, shares: Shares): number[] {
  const { floor } = shares
  if (candidate.shards.length <= floor) return []
  const share = shares.extras > 0 ? floor + 1 : floor
  shares.extras -= share - floor
  if (candidate.shards.length > share) candidate.shards = heaviestFirst(candidate)
  return candidate.shards.splice(share)
}

function heaviestFirst({ seed, shards }: Candidate): number[] {
  const weights = new Map(shards.map((shard) => [shard, rendezvousWeight(seed, shard)]))
  return shards.toSorted((a, b) => weights.get(b)! - weights.get(a)! || a - b)
}

/**
 * The heaviest of those with less than their share. There is one for each shard that nobody has: the floors and
 * the extras left add up to just these shards.
 */
function taker(shard: number, candidates: readonly Candidate[], shares: Shares): Candidate {
  let found: Candidate | null = null
  let heaviest = -1
  for (const candidate of candidates) {
    const { length } = candidate.shards
    if (length > shares.floor || (length === shares.floor && shares.extras === 0)) continue
    const weight = rendezvousWeight(candidate.seed, shard)
    if (weight > heaviest) [found, heaviest] = [candidate, weight]
  }
  if (found === null) throw new Error(`no member has less than its share, but shard ${shard} has nobody`)
  if (found.shards.length === shares.floor) shares.extras--
  found.shards.push(shard)
  return found
}
