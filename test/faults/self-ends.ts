/** Nodes that end by themselves: each is a breach, but for the few that are meant. */
import type { Violation } from './evidence.ts'
import type { Fault } from './history.ts'

/** A node ended, and nobody had asked it to. */
export interface SelfEnd {
  readonly name: string
  readonly at: number
  /** It was not ready yet. */
  readonly starting: boolean
  /** Its last word: the fatal line of its log, or its exit code. */
  readonly why: string
}

interface Meant {
  readonly starting: boolean
  readonly why: RegExp
  /** What of a fault of this node or of a broker explains it. */
  readonly under: RegExp
}

/** A node draws its conclusion so long after the fault at most, ms. */
const CONCLUSION_MS = 10_000

const MEANT: readonly Meant[] = [
  // It was silent past its lease, and others refunded what it had open: what it charged from now on would be wrong.
  {
    starting: false,
    why: /^the ledger of this node was closed by another node$/,
    under: /^(freeze|nats-(blackhole|up|down))$/,
  },
  // Without its broker or its database it cannot start; it says so, and its orchestrator comes again.
  {
    starting: true,
    why: /^(?!.*(Type|Reference|Range|Assertion)Error)/,
    under: /^(freeze|kill|nats-\w+|postgres-\w+)$/,
  },
]

/** `brokers`: the names of the brokers, whose faults are those of every node. */
export function checkSelfEnds(
  ends: readonly SelfEnd[],
  faults: readonly Fault[],
  brokers: readonly string[],
): Violation[] {
  const isMeant = (end: SelfEnd) => {
    const around = faults
      .filter(({ from, to }) => from <= end.at && end.at <= to + CONCLUSION_MS)
      .map(({ kind }) => kind.split(' '))
      .filter(([, target]) => target === undefined || [end.name, ...brokers].includes(target))
    return MEANT.some(
      ({ starting, why, under }) =>
        starting === end.starting && why.test(end.why) && around.some(([what]) => under.test(what!)),
    )
  }
  return ends.filter((end) => !isMeant(end)).map((detail) => ({ rule: 'self-end', detail }))
}
