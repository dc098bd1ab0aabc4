/**
 * Loaded into a node under measurement: measures each turn of its event loop, and on a signal tells the longest ones since the last
 * signal, as a log line.
 *
 * A turn goes from one check phase to the next. The immediate that ends it is without a reference, so it keeps the loop neither busy
 * nor alive: the loop sleeps as it does without it.
 */
import { PerformanceObserver } from 'node:perf_hooks'
import { monotonicMs } from '../load/program.ts'

/** `msg` of the line; its other members are those of `TurnReport`. */
export const TURNS_EVENT = 'turns'
export const REPORT_SIGNAL = 'SIGUSR2'
/** NODE_OPTIONS of a node that does so. */
export const REPORT_OPTIONS = `--import ${import.meta.filename}`

export interface Turn {
  /** Its beginning and its end, monotonic ms of the machine. */
  readonly from: number
  readonly to: number
  /** Of the thread. */
  readonly cpuMs: number
  /** Without the time in which the loop waited for something to happen. */
  readonly wallMs: number
  /** Of this, collections of garbage: by the wall clock, on the thread. */
  readonly gcMs: number
}

export interface TurnReport {
  readonly turns: number
  /** The longest by CPU without collections, by CPU, and by the wall clock. */
  readonly work: Turn
  readonly cpu: Turn
  readonly wall: Turn
  /** The longest collection. */
  readonly gcMs: number
  readonly rss: number
  readonly heapUsed: number
  /** The longest ones by CPU. */
  readonly longest: readonly Turn[]
}

/** Turns that are kept, by each measure. */
const MOST = 40
/** What a shorter collection takes does not count. */
const SHORTEST_GC_MS = 0.5
/** What the clock of the machine is ahead of that of the process. */
const SINCE_START_MS = monotonicMs() - performance.now()
const NO_TURN: Turn = { from: 0, to: 0, cpuMs: 0, wallMs: 0, gcMs: 0 }

type Measured = Omit<Turn, 'gcMs'>
interface Collection {
  readonly from: number
  readonly ms: number
}

/** CPU that is left of a turn without its collections, ms. */
export function workOf({ cpuMs, gcMs }: Turn): number {
  return Math.max(0, cpuMs - gcMs)
}

/** `turns`, each with the collections within it. */
export function withCollections(turns: readonly Measured[], collections: readonly Collection[]): Turn[] {
  return turns.map((turn) => {
    const within = collections.filter(({ from, ms }) => from < turn.to && from + ms > turn.from)
    return { ...turn, gcMs: within.reduce((sum, { ms }) => sum + ms, 0) }
  })
}

function longestBy(turns: readonly Turn[], measure: (turn: Turn) => number): Turn {
  return turns.reduce((longest, turn) => (measure(turn) > measure(longest) ? turn : longest), NO_TURN)
}

/** Of the longest turns, few enough to be kept. */
class Longest {
  readonly #measure: (turn: Measured) => number
  #turns: Measured[] = []
  #least = 0

  constructor(measure: (turn: Measured) => number) {
    this.#measure = measure
  }

  add(turn: Measured): void {
    if (this.#measure(turn) <= this.#least) return
    this.#turns.push(turn)
    if (this.#turns.length < 2 * MOST) return
    this.#turns = this.sorted().slice(0, MOST)
    this.#least = this.#measure(this.#turns.at(-1)!)
  }

  sorted(): Measured[] {
    return this.#turns.toSorted((one, other) => this.#measure(other) - this.#measure(one))
  }
}

class Meter {
  #byCpu = new Longest(({ cpuMs }) => cpuMs)
  #byWall = new Longest(({ wallMs }) => wallMs)
  #collections: Collection[] = []
  #turns = 0
  #last = { at: 0, cpu: 0, idle: 0 }

  begin(): void {
    const observer = new PerformanceObserver((list) => this.#note(list.getEntries()))
    observer.observe({ entryTypes: ['gc'] })
    this.#endTurn()
  }

  report(): TurnReport {
    const turns = withCollections([...this.#byCpu.sorted(), ...this.#byWall.sorted()], this.#collections)
    const { rss, heapUsed } = process.memoryUsage()
    const report = {
      turns: this.#turns,
      work: longestBy(turns, workOf),
      cpu: longestBy(turns, ({ cpuMs }) => cpuMs),
      wall: longestBy(turns, ({ wallMs }) => wallMs),
      gcMs: this.#collections.reduce((longest, { ms }) => Math.max(longest, ms), 0),
      rss,
      heapUsed,
      longest: turns.slice(0, MOST),
    }
    this.#byCpu = new Longest(({ cpuMs }) => cpuMs)
    this.#byWall = new Longest(({ wallMs }) => wallMs)
    this.#collections = []
    this.#turns = 0
    return report
  }

  #endTurn(): void {
    const { user, system } = process.threadCpuUsage()
    const last = this.#last
    const now = { at: monotonicMs(), cpu: (user + system) / 1_000, idle: performance.nodeTiming.idleTime }
    if (last.at > 0) {
      const wallMs = now.at - last.at - (now.idle - last.idle)
      const turn = { from: last.at, to: now.at, cpuMs: now.cpu - last.cpu, wallMs }
      this.#byCpu.add(turn)
      this.#byWall.add(turn)
      this.#turns++
    }
    this.#last = now
    setImmediate(() => this.#endTurn()).unref()
  }

  #note(entries: readonly { startTime: number; duration: number }[]): void {
    for (const { startTime, duration } of entries)
      if (duration >= SHORTEST_GC_MS)
        this.#collections.push({ from: startTime + SINCE_START_MS, ms: duration })
  }
}

// The one who asks reads the names above from the same file, and has no such option.
if (process.env.NODE_OPTIONS?.includes(import.meta.filename)) {
  const meter = new Meter()
  meter.begin()
  process.on(REPORT_SIGNAL, () => {
    process.stdout.write(`${JSON.stringify({ msg: TURNS_EVENT, ...meter.report() })}\n`)
  })
}
