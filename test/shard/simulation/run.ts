/** One seeded run: load and faults, then rest until everything is settled, then the checker. */
import type { BufferRecord } from '../../../internal/domain/model.ts'
import { proofSubject } from '../../../internal/shard/claim/takeover.ts'
import { isOver } from '../../../internal/shard/journal/state.ts'
import { FencedError } from '../../../internal/shard/ports.ts'
import { seededFractions } from '../../support/seeded.ts'
import { BUFFERS, record } from './buffers.ts'
import { check } from './checker.ts'
import { Events } from './events.ts'
import { Ingress } from './ingress.ts'
import { OwnerProcess } from './process.ts'
import { type Rule, World } from './world.ts'

/** How long load and faults last, ms: most runs are short, some long enough for whole rounds of purges. */
const CHAOS_MS = { short: { least: 1_000, most: 3_000 }, long: { least: 6_000, most: 12_000 } }
const LONG_RUNS = 0.1
/** Everything must be over so long after the faults, ms. */
const REST_MS = 120_000
/** Then housekeeping has some time, ms. */
const CLEANING_MS = 3_000
const OWNERS_AT_MOST = 9

export interface RunResult {
  errors: string[]
  /** Of all that was written, sent and stored as dead letters: the same for the same seed. */
  hash: string
  events: number
  sent: number
  dead: number
  duplicates: number
  owners: number
  commits: number
  purgedJournal: number
  purgedInbox: number
}

/** `leftOut`: a rule that the simulated Postgres breaks. */
export async function run(seed: number, leftOut?: Rule): Promise<RunResult> {
  const events = new Events(seededFractions(seed))
  return new Simulation(events, new World(events, leftOut)).run()
}

class Simulation {
  readonly #events: Events
  readonly #world: World
  readonly #records = new Map<string, BufferRecord>(
    Object.values(BUFFERS).map((uid) => [uid, record(uid, uid === BUFFERS.parallel ? 2 : 1)]),
  )
  readonly #owners: OwnerProcess[] = []
  readonly #end: number
  readonly #ingress: Ingress
  #over = 0

  constructor(events: Events, world: World) {
    this.#events = events
    this.#world = world
    const { least, most } = events.random() < LONG_RUNS ? CHAOS_MS.long : CHAOS_MS.short
    this.#end = events.now + events.between(least, most)
    this.#ingress = new Ingress(world, this.#end)
  }

  async run(): Promise<RunResult> {
    const events = this.#events
    const world = this.#world
    this.#start()
    this.#watch()
    this.#configure()
    events.after(events.between(100, 800), () => this.#trouble())
    await events.run(this.#end)
    this.#change(BUFFERS.paused, { enabled: true })
    world.faults = false
    world.failing = 0.1
    await events.run(this.#end + REST_MS, () => this.#settled())
    await events.run(events.now + CLEANING_MS)
    const errors = this.#errors()
    for (const owner of this.#owners) owner.kill()
    return { errors, ...this.#figures() }
  }

  #start(): void {
    const replace = () => {
      if (this.#events.random() < 0.5)
        this.#events.after(this.#events.between(20, 1_500), () => this.#startMore())
    }
    this.#owners.push(new OwnerProcess(this.#world, this.#owners.length + 1, this.#records, replace))
  }

  #startMore(): void {
    if (this.#events.now <= this.#end && this.#owners.length < OWNERS_AT_MOST) this.#start()
  }

  /** What the node does in the real system: somebody always claims a shard without an owner. */
  #watch(): void {
    if (this.#owners.every((owner) => owner.gone)) this.#start()
    this.#events.after(300, () => this.#watch())
  }

  #trouble(): void {
    const events = this.#events
    if (events.now > this.#end) return
    const owner = this.#owners[Math.floor(events.random() * this.#owners.length)]!
    this.#strike(owner, events.random())
    events.after(events.between(50, 900), () => this.#trouble())
  }

  #strike(owner: OwnerProcess, luck: number): void {
    const world = this.#world
    const events = this.#events
    if (luck < 0.2) this.#startMore()
    else if (luck < 0.35) owner.kill()
    else if (luck < 0.55) owner.life.freeze(events.between(50, 4_000))
    else if (luck < 0.65) world.inbox.restart()
    else if (luck < 0.7) world.journal.restart()
    else if (luck < 0.75) for (const each of this.#owners) each.reconnect()
    else if (luck < 0.78) world.send(proofSubject(0), Buffer.alloc(0))
    else if (luck < 0.83) void owner.shard.stop(1_000).then(() => owner.kill())
    else if (luck < 0.92)
      void owner.shard.handOver(events.between(500, 12_000), () => this.#startMore()).then(() => owner.kill())
    else if (world.rows.size > 0)
      world.deleteRow([...world.rows.keys()][Math.floor(events.random() * world.rows.size)]!)
  }

  /** One buffer goes on and off; one is switched off and then deleted. */
  #configure(): void {
    const events = this.#events
    const half = Math.floor((this.#end - events.now) / 2)
    const toggle = () => {
      if (events.now > this.#end) return
      this.#change(BUFFERS.paused, { enabled: !this.#records.get(BUFFERS.paused)!.buffer.enabled })
      events.after(events.between(200, 2_500), toggle)
    }
    events.after(300, toggle)
    const { deleted: uid } = BUFFERS
    events.after(events.between(0, half), () => this.#change(uid, { enabled: false }))
    events.after(events.between(half, 2 * half), () => this.#change(uid, { enabled: false, deleted: true }))
  }

  #change(uid: string, changes: { enabled: boolean; deleted?: boolean }): void {
    const old = this.#records.get(uid)!
    const { enabled, deleted = old.deleted } = changes
    const next = { ...old, version: old.version + 1, deleted, buffer: { ...old.buffer, enabled } }
    this.#records.set(uid, next)
    for (const owner of this.#owners) owner.tell(next)
  }

  /** What is over stays over: what was looked at once is not looked at again. */
  #settled(): boolean {
    const { accepted } = this.#ingress
    const { truth } = this.#world
    while (this.#over < accepted.length && isOver(truth, accepted[this.#over]!)) this.#over++
    return this.#over === accepted.length && truth.batches.size === 0
  }

  #errors(): string[] {
    const { accepted, told } = this.#ingress
    const world = this.#world
    const errors = [...world.wrong, ...check({ world, accepted, told, settled: this.#settled() })]
    for (const { ended } of this.#owners)
      if (ended && !isExpectedEnd(ended)) errors.push(`ended: ${ended.stack}`)
    return errors
  }

  #figures(): Omit<RunResult, 'errors'> {
    const { journal, inbox, sent, rows, deletedRows } = this.#world
    return {
      hash: this.#world.historyHash(),
      events: this.#events.count,
      sent: sent.length,
      dead: rows.size + deletedRows.size,
      duplicates: this.#ingress.told.size,
      owners: this.#owners.length,
      commits: journal.lastSeq - journal.state().origin! + 1,
      purgedJournal: journal.state().firstSeq - journal.state().origin!,
      purgedInbox: inbox.state().firstSeq - inbox.state().origin!,
    }
  }
}

/** Fenced, or a claim that the network cut short: the node claims again. */
function isExpectedEnd(error: Error): boolean {
  return error instanceof FencedError || error.message === 'no answer'
}
