/** One cell: all who are compared run all the time and are loaded in turns, round by round. */
import { setTimeout as delay } from 'node:timers/promises'
import { inTurn } from '../figures.ts'
import { type Generator, type Sink, startGenerator, startSink } from '../load/programs.ts'
import { cpuOf, machineBusyMs, memoryOf, sumOf } from '../processes.ts'
import { SECRET } from '../systems.ts'
import { type Outcome, outcomeOf } from './analysis.ts'
import { type Cell, CONNECTIONS, type Row, WARM_MS, WINDOW } from './cells.ts'
import { CONTENDERS, type Contender, type ContenderName } from './contenders.ts'
import type { Tool, Tools } from './tools.ts'

/** What has not been delivered by then is no longer waited for, ms. */
const DRAIN_MS = 45_000
/** Nothing more is waited for once nothing has come for so long, ms: longer than any window and retry. */
const STALL_MS = 8_000
const POLL_MS = 100

export interface Round {
  outcome: Outcome
  /** CPU µs an item of all processes of the system, until the last one that came: a delivered item, or an accepted one of `ingest`. */
  cpuUs: number
  /** Of that, what is not the program's own: NATS, Redis, Postgres. */
  storesUs: number
  /** Of all its processes once everything was delivered, bytes. */
  memory: number
  /** Share of the machine's busy time that neither system nor load used. */
  foreign: number
  /** Status and body of the first answer other than 202. */
  firstFailure?: string | undefined
}

export interface Comparison {
  cell: Cell
  rounds: Map<Row, Round[]>
  /** Rows that this machine cannot run, with what it lacks. */
  left: Map<Row, Tool[]>
}

interface Load {
  generator: Generator
  sink: Sink
  /** Ids of items never come twice. */
  nextId: number
}

export async function compare(cell: Cell, rounds: number, tools: Tools): Promise<Comparison> {
  const { sink, url: sinkUrl } = await startSink()
  const load: Load = { generator: startGenerator(), sink, nextId: 0 }
  const comparison: Comparison = { cell, rounds: new Map(), left: new Map() }
  const running = new Map<ContenderName, Contender>()
  for (const row of cell.rows) {
    const definition = CONTENDERS[row.contender]
    const missing = tools.missing(definition.needs)
    if (missing.length > 0) {
      comparison.left.set(row, missing)
      continue
    }
    comparison.rounds.set(row, [])
    if (running.has(row.contender)) continue
    const setting = { sync: cell.sync, window: WINDOW, sinkUrl, delivers: cell.work !== 'ingest' }
    running.set(row.contender, await definition.start(setting, tools))
  }
  for (const [name, contender] of running) {
    const row = cell.rows.find((each) => each.contender === name)!
    // Code is slow until it is compiled, and a fixed rate would take minutes to get it there.
    await play(contender, row, { ...cell, rate: undefined, ms: cell.unmeasuredMs }, load, rounds)
  }
  const rows = [...comparison.rounds]
  for (let round = 0; round < rounds; round++) {
    for (const [row, measured] of inTurn(rows, round)) {
      measured.push(await play(running.get(row.contender)!, row, cell, load, round))
    }
  }
  await Promise.all([...running.values()].map(({ system }) => system.stop()))
  await Promise.all([load.generator.stop(), sink.stop()])
  return comparison
}

async function play(
  contender: Contender,
  { explicit }: Row,
  cell: Cell,
  load: Load,
  seed: number,
): Promise<Round> {
  const { system } = contender
  await load.sink.ask({ kind: 'reset' })
  const before = usage(contender, load)
  const sent = await load.generator.ask({
    kind: 'recorded',
    url: system.ingestUrl,
    headers: system.headers,
    secret: SECRET,
    explicit,
    connections: CONNECTIONS,
    firstId: load.nextId,
    keys: cell.keys,
    size: cell.size,
    seed,
    ms: cell.ms,
    ...(cell.rate !== undefined && { rate: cell.rate }),
  })
  load.nextId += sent.keys.length
  const accepted = sent.ackedAt.filter((at) => !Number.isNaN(at)).length
  let after = usage(contender, load)
  const use = () => {
    after = usage(contender, load)
  }
  if (cell.work !== 'ingest') await drained(load.sink, accepted, use)
  else {
    await contender.settled?.(accepted)
    use()
  }
  const memory = system.roots.reduce((sum, root) => sum + memoryOf(root), 0)
  const outcome = outcomeOf(sent, await load.sink.ask({ kind: 'batches' }), WINDOW, WARM_MS)
  if (cell.work === 'ingest' || outcome.lost > 0) await contender.clear?.()
  const [own, machine] = [after.system - before.system, after.machine - before.machine]
  const items = cell.work === 'ingest' ? accepted : outcome.delivered
  return {
    outcome,
    memory,
    firstFailure: sent.firstFailure,
    cpuUs: (own * 1_000) / items,
    storesUs: ((own - after.app + before.app) * 1_000) / items,
    foreign: Math.max(0, (machine - own - (after.load - before.load)) / machine),
  }
}

/** CPU ms so far. */
function usage({ system }: Contender, { generator, sink }: Load) {
  const cpu = system.cpu()
  return {
    system: sumOf(cpu),
    app: cpu.get('app') ?? 0,
    load: sumOf(cpuOf(generator.pid)) + sumOf(cpuOf(sink.pid)),
    machine: machineBusyMs(),
  }
}

/** Resolves when everything has come, or nothing comes any more. `moved`: called when more of it was seen. */
export async function drained(sink: Sink, accepted: number, moved = () => {}): Promise<void> {
  const began = performance.now()
  let [last, movedAt] = [-1, began]
  for (;;) {
    const { distinct } = await sink.ask({ kind: 'stats' })
    const now = performance.now()
    if (distinct !== last) {
      ;[last, movedAt] = [distinct, now]
      moved()
    }
    if (distinct >= accepted) return
    if (now - movedAt > STALL_MS || now - began > DRAIN_MS) return
    await delay(POLL_MS)
  }
}
