/** Which faults a run of the cluster sees: a function of its seed alone. */
import { seededFractions } from '../support/seeded.ts'

/** Three times the TTL of a lease, ms. */
const LONGEST_MS = 15_000
/** Longer than that a joiner stays until it is killed, ms. */
export const LONG_STAY_MS = 5_000

export const KINDS = [
  'kill',
  'freeze',
  'restart',
  'restart-actors',
  'join',
  'nats-latency',
  'nats-blackhole',
  'nats-up',
  'nats-down',
  'nats-reset',
  'postgres-latency',
  'postgres-blackhole',
  'postgres-up',
  'postgres-down',
  'postgres-reset',
  'destination-latency',
  'destination-blackhole',
  'destination-reset',
  'broker-freeze',
  'broker-kill',
] as const

export type Kind = (typeof KINDS)[number]

/** One fault: what, to whom, how long. */
export interface Act {
  readonly kind: Kind
  /** A place, or a broker; `-` for the destination, and for all actors. */
  readonly target: string
  /** From its beginning to its end, ms. */
  readonly holdMs: number
}

/** Acts of one step begin together; the next step begins when the cluster is healed. */
export interface Step {
  readonly acts: readonly Act[]
  /** Items accepted since the step before. */
  readonly afterItems: number
}

export interface Cast {
  readonly places: readonly string[]
  readonly brokers: readonly string[]
  /** Nodes reach the broker through proxies. */
  readonly proxied: boolean
  /** Default: all. */
  readonly kinds?: readonly Kind[]
  readonly steps: number
}

/** What counts as a run at least, unless its kinds have none. */
export const LEAST_FAULTS = 3

/** `cast.steps`, and as many more as it takes to have three faults. */
export function planOf(seed: number, cast: Cast): Step[] {
  const random = seededFractions(seed * 7 + 1)
  const steps = Array.from({ length: cast.steps }, () => stepOf(random, cast))
  const some = kindsOf(cast).some((kind) => !isOrderly(kind))
  while (some && faultsOf(steps) < LEAST_FAULTS) steps.push(stepOf(random, cast))
  return steps
}

/** Acts that break something; what is done in good order excuses nothing. */
export function faultsOf(steps: readonly Step[]): number {
  return steps.flatMap(({ acts }) => acts).filter(isFault).length
}

/** A node that joins leaves in good order, or, when it stayed long, by a kill. */
export function isFault({ kind, holdMs }: Act): boolean {
  return kind === 'join' ? holdMs > LONG_STAY_MS : !isOrderly(kind)
}

function isOrderly(kind: Kind): boolean {
  return kind === 'join' || kind === 'restart' || kind === 'restart-actors'
}

function stepOf(random: () => number, cast: Cast): Step {
  const first = actOf(random, cast)
  const second = random() < 0.35 ? actOf(random, cast) : null
  // Two faults of one target would undo each other.
  const apart = second && second.target !== first.target
  const alone = [first, second].some((act) => act?.kind === 'restart-actors')
  const acts = apart && !alone ? [first, second] : [first]
  return { acts, afterItems: 100 + Math.floor(random() * 400) }
}

function actOf(random: () => number, cast: Cast): Act {
  const kind = pick(random, kindsOf(cast))
  return { kind, target: targetOf(random, kind, cast), holdMs: Math.round(holdOf(random)) }
}

function kindsOf(cast: Cast): Kind[] {
  return (cast.kinds ?? KINDS).filter((kind) => cast.proxied || !kind.startsWith('nats-'))
}

function targetOf(random: () => number, kind: Kind, { places, brokers }: Cast): string {
  if (kind.startsWith('destination-') || kind === 'restart-actors') return '-'
  if (kind.startsWith('broker-')) return pick(random, brokers)
  return kind === 'join' ? 'actor' : pick(random, places)
}

/** Half of them within a lease's life, half up to three times as long. */
function holdOf(random: () => number): number {
  return random() < 0.5 ? 300 + random() * 4_700 : 5_000 + random() * (LONGEST_MS - 5_000)
}

function pick<T>(random: () => number, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!
}
