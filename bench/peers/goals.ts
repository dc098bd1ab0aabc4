/** Figures with a goal, round by round; how many of the rounds reach it, and whether their median does. */
import { median, spread, table } from '../figures.ts'
import type { Comparison, Round } from './compare.ts'
import type { ContenderName } from './contenders.ts'

export interface Goal {
  figure: string
  /** `≥` of what should be large, `≤` of what should be small. */
  bound: readonly ['≥' | '≤', number]
  /** Of each round; none: a peer of it was not there, or failed. */
  values: number[]
}

type Figure = (round: Round) => number

const acceptedRate: Figure = ({ outcome }) => outcome.acceptedPerSecond
const deliveredRate: Figure = ({ outcome }) => outcome.deliveredPerSecond
const cpu: Figure = ({ cpuUs }) => cpuUs

export function tableOfGoals(goals: readonly Goal[]): string {
  const rows = goals.map(({ figure, bound: [sign, bound], values }) => {
    if (values.length === 0) return [figure, `${sign} ${bound}`, '', '', '**not measured**']
    const reaches = (value: number) => (sign === '≥' ? value >= bound : value <= bound)
    const share = `${values.filter(reaches).length} of ${values.length}`
    const verdict = reaches(median(values)) ? 'reached' : '**not reached**'
    return [figure, `${sign} ${bound}`, spread(values, 2), share, verdict]
  })
  return table(['figure', 'goal', 'median (least–most)', 'rounds that reach it', ''], rows)
}

/** Those that follow from a cell; what a missing peer is part of has no values. */
export function goalsOf(comparison: Comparison): Goal[] {
  const { work, sync, rate, keys, size } = comparison.cell
  const goals = new Goals(comparison)
  // Who stands beside Graphile Worker alone shows that, and no more.
  if (comparison.cell.rows.some(({ contender }) => contender === 'graphile')) return []
  const zipf = keys.zipf === undefined ? '' : ' by Zipf'
  const large = size === 1_024 ? '' : `${size / 1_024} KB, `
  const setting = `${keys.count.toLocaleString('en')} keys${zipf}, ${large}${sync}, nothing delivered`
  const load = `${keys.count.toLocaleString('en')} keys${zipf}, ${large}sync ${sync}`
  if (work === 'ingest') {
    goals.add(
      `ingest accepted/s ÷ hand-written, ${setting}`,
      ['≥', sync === 'always' ? 3 : 1.5],
      acceptedRate,
      'hand',
    )
    goals.add(`ingest accepted/s ÷ Asynq, ${setting}`, ['≥', 0.9], acceptedRate, 'asynq')
    goals.addExplicit(`explicit ids ÷ random ids, accepted/s, ${setting}`, ['≥', 0.8])
  }
  if (work === 'whole') {
    goals.addBest(`end to end items/s ÷ best peer, ${load}`, ['≥', 1.2], deliveredRate)
  }
  if (rate !== undefined) {
    goals.add(`CPU an item at ${rate.toLocaleString('en')}/s ÷ hand-written, ${load}`, ['≤', 1], cpu, 'hand')
  }
  const named = rate === undefined ? work : `at ${rate.toLocaleString('en')}/s`
  goals.addBest(`CPU an item ÷ best peer, ${named}, ${load}`, ['≤', 0.8], cpu)
  return goals.all
}

class Goals {
  readonly all: Goal[] = []
  /** Of the rows with ids by the sender. */
  readonly #rounds = new Map<ContenderName, Round[]>()
  readonly #random: Round[] | undefined

  constructor({ rounds }: Comparison) {
    for (const [{ contender, explicit }, measured] of rounds) {
      if (explicit) this.#rounds.set(contender, measured)
      else this.#random = measured
    }
  }

  add(figure: string, bound: Goal['bound'], of: Figure, peer: ContenderName): void {
    this.#push(figure, bound, of, this.#rounds.get(peer))
  }

  addExplicit(figure: string, bound: Goal['bound']): void {
    this.#push(figure, bound, acceptedRate, this.#random)
  }

  /** Its name is added to the figure's. */
  addBest(figure: string, bound: Goal['bound'], of: Figure): void {
    const peers = [...this.#rounds].filter(([name]) => name !== 'penstock')
    const middle = (rounds: readonly Round[]) => median(rounds.map(of))
    const ascending = peers.sort(([, a], [, b]) => middle(a) - middle(b))
    const best = bound[0] === '≥' ? ascending.at(-1) : ascending[0]
    this.#push(best ? `${figure} (${best[0]})` : figure, bound, of, best?.[1])
  }

  #push(figure: string, bound: Goal['bound'], of: Figure, others: readonly Round[] | undefined): void {
    const own = (others && this.#rounds.get('penstock')) ?? []
    this.all.push({ figure, bound, values: own.map((round, n) => of(round) / of(others![n]!)) })
  }
}
