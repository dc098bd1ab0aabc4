/** One seeded run: load and faults, then rest until everything is settled, then the checker. */
import { proofSubject } from '../../../internal/shard/claim/takeover.ts'
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
/** A process is connected to a server without its peers for so long, ms: sometimes for longer than an owner waits for it. */
const CUT_OFF_MS = { short: { least: 20, most: 1_000 }, long: { least: 4_000, most: 7_000 } }
const LONG_CUTS = 0.1
/** Of claims that meet such a server, and when they do, ms. */
const CLAIMS_CUT_OFF = 0.2
const CLAIMING_MS = 60
/** How often such servers get cut off, ms. */
const REMEMBERED_MS = 100
/** Everything must be over so long after the faults, ms. */
const REST_MS = 120_000
/** Then housekeeping has some time, ms. */
const CLEANING_MS = 3_000
const OWNERS_AT_MOST = 9
/**
 * A wall clock is ahead by so much for a moment: nothing may wait for the difference, so the rest is shorter. An owner that
 * is ahead by a minute takes packs for too old to be answered.
 */
const AHEAD_MS = 55_000
const REST_BEHIND_CLOCKS_MS = 48_000
/** Clocks are wrong for so long after the faults, ms. */
const CLOCKS_STEP_MS = 1_500
/** Longer than a group of one batch is open. */
const FLUSH_DELAY_MS = 700
const SHORT_FLUSH_DELAY_MS = 100
/** What is live, with its snapshot, takes nearly all of it at times. */
const FULL_JOURNAL_BYTES = 45_000

/** Where the power may fail, load and faults last for so long, so that purges that wait for the disk come, ms. */
const POWER_RUNS_MS = { least: 2_500, most: 7_000 }
/** The servers are gone for so long, ms. */
const DOWN_MS = { least: 5, most: 300 }
/** So many times, at most; half of them are followed by another one soon, ms. */
const POWER_CUTS = 3
const SOON_MS = { least: 20, most: 500 }
/** A process is connected again so long after the servers are back, at most, ms. */
const RECONNECTED_MS = 60
/** Of processes, at a power cut: all in half of the runs, few in the others. */
const DEADLY = { few: 0.15, many: 0.7 }
/** Whoever knows of a loss needs no longer to tell, ms. */
const TELLING_MS = 15_000

export interface Faults {
  /** A rule that the simulated Postgres breaks. */
  readonly leftOut?: Rule
  /** All servers of the broker lose power now and then. Two thirds of the seeds answer before they sync. */
  readonly power?: boolean
  /** Each journal has little room. */
  readonly tight?: boolean
}

export interface RunResult {
  errors: string[]
  /** Of all that was written, sent and stored as dead letters: the same for the same seed. */
  hash: string
  events: number
  sent: number
  dead: number
  duplicates: number
  owners: number
  pauses: number
  commits: number
  purgedJournal: number
  purgedInbox: number
  powerCuts: number
  /** 1: the power took something of a log. */
  losses: number
  /** 1: the shard told of a loss. */
  told: number
}

export async function run(seed: number, faults: Faults = {}): Promise<RunResult> {
  const { leftOut, power = false, tight = false } = faults
  const events = new Events(seededFractions(seed))
  // A journal without room waits for drops to be a minute old, which is longer than the rest behind wrong clocks.
  const clocksStep = seed % 11 === 4 && seed % 5 !== 0 && !tight
  const restores = seed % 11 === 3
  const journalBytes = tight ? FULL_JOURNAL_BYTES : journalBytesOf(seed)
  const repeatsPurges = power || seed % 7 === 2
  const syncsLater = power && seed % 3 !== 0
  const world = new World(events, { leftOut, journalBytes, clocksStep, restores, repeatsPurges, syncsLater })
  return new Simulation(events, world, { delayMs: delayOf(seed), power }).run()
}

/** Of most seeds no buffer keeps its flushes apart. */
function delayOf(seed: number): number {
  return { 3: FLUSH_DELAY_MS, 4: SHORT_FLUSH_DELAY_MS }[seed % 11] ?? 0
}

/** Most journals have room for ever. Every fifth one gets full again and again, and no owner may be without room. */
function journalBytesOf(seed: number): number | undefined {
  return seed % 5 === 0 ? FULL_JOURNAL_BYTES : undefined
}

class Simulation {
  readonly #events: Events
  readonly #world: World
  readonly #owners: OwnerProcess[] = []
  readonly #end: number
  readonly #ingress: Ingress
  #over = 0
  readonly #power: boolean
  /** Of processes, at a power cut. */
  readonly #deadly: number

  /** `delayMs`: between two flushes of a group of a buffer that is not deleted. */
  constructor(events: Events, world: World, { delayMs, power }: { delayMs: number; power: boolean }) {
    this.#events = events
    this.#world = world
    const { least, most } = power
      ? POWER_RUNS_MS
      : events.random() < LONG_RUNS
        ? CHAOS_MS.long
        : CHAOS_MS.short
    this.#end = events.now + events.between(least, most)
    this.#power = power
    this.#deadly = power && events.random() < 0.5 ? DEADLY.many : DEADLY.few
    if (power) this.#planPowerCuts()
    this.#ingress = new Ingress(world, this.#end)
    if (world.clocksStep) events.after(events.between(100, 800), () => this.#setClock())
    for (const uid of Object.values(BUFFERS)) {
      const isDeleted = uid === BUFFERS.deleted || uid === BUFFERS.removed
      world.records.set(uid, record(uid, uid === BUFFERS.parallel ? 2 : 1, isDeleted ? 0 : delayMs))
    }
  }

  async run(): Promise<RunResult> {
    const events = this.#events
    const world = this.#world
    this.#start()
    this.#watch()
    this.#remember()
    this.#configure()
    events.after(events.between(100, 800), () => this.#trouble())
    const told = () => world.losses.told !== null
    await events.run(this.#end, told)
    if (!told()) {
      this.#change(BUFFERS.paused, { enabled: true })
      world.faults = false
      world.failing = world.clocksStep ? 0.3 : 0.1
      const restMs = world.clocksStep ? REST_BEHIND_CLOCKS_MS : REST_MS
      const settled = () => this.#settled() && this.#ingress.unanswered === 0
      await events.run(this.#end + restMs, () => told() || settled())
      await events.run(events.now + CLEANING_MS, told)
      await this.#letTell()
    }
    const errors = this.#errors()
    for (const owner of this.#owners) owner.kill()
    return { errors, ...this.#figures() }
  }

  /** Whoever knows of a loss has time to say so; at last somebody claims who knows what the stores know. */
  async #letTell(): Promise<void> {
    const { losses } = this.#world
    const over = () => losses.told !== null || losses.unnoticed().length === 0
    await this.#events.run(this.#events.now + TELLING_MS, over)
    if (over()) return
    for (const owner of this.#owners) owner.kill()
    await this.#events.run(this.#events.now + TELLING_MS, over)
  }

  #planPowerCuts(): void {
    const events = this.#events
    for (let count = events.between(1, POWER_CUTS); count > 0; count--) {
      const at = events.between(300, this.#end - events.now)
      events.after(at, () => this.#cutPower())
      if (events.random() < 0.5)
        events.after(at + events.between(SOON_MS.least, SOON_MS.most), () => this.#cutPower())
    }
  }

  #cutPower(): void {
    const events = this.#events
    if (events.now > this.#end) return
    const downMs = events.between(DOWN_MS.least, DOWN_MS.most)
    for (const owner of this.#owners) if (!owner.gone && events.random() < this.#deadly) owner.kill()
    const { inbox } = this.#world.cutPower(downMs)
    this.#ingress.lost(inbox.from)
    this.#over = 0
    // What the dead had on its way is gone, too.
    for (const owner of this.#owners) owner.disconnect(downMs + events.between(0, RECONNECTED_MS))
  }

  #start(): void {
    const replace = () => {
      if (this.#events.random() < 0.5)
        this.#events.after(this.#events.between(20, 1_500), () => this.#startMore())
    }
    const owner = new OwnerProcess(this.#world, this.#owners.length + 1, replace)
    this.#owners.push(owner)
    this.#world.owners.push(owner)
    if (!this.#world.faults || this.#events.random() >= CLAIMS_CUT_OFF) return
    this.#events.after(this.#events.between(0, CLAIMING_MS), () => owner.cutOff(this.#cutOffMs()))
  }

  #startMore(): void {
    if (this.#events.now <= this.#end && this.#owners.length < OWNERS_AT_MOST) this.#start()
  }

  /** What the node does in the real system: somebody always claims a shard without an owner. */
  #watch(): void {
    if (this.#owners.every((owner) => owner.gone)) this.#start()
    this.#events.after(300, () => this.#watch())
  }

  #remember(): void {
    this.#world.remember()
    if (this.#events.now < this.#end) this.#events.after(REMEMBERED_MS, () => this.#remember())
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
    if (luck < 0.17) this.#startMore()
    else if (luck < 0.3) owner.kill()
    else if (luck < 0.45) owner.life.freeze(events.between(50, 4_000))
    else if (luck < 0.55) this.#uncertain(owner)
    else if (luck < 0.64) world.inbox.restart()
    else if (luck < 0.68) world.journal.restart()
    else if (luck < 0.7) for (const each of this.#owners) each.reconnect()
    else if (this.#power && luck < 0.715) owner.besideOldLeader(this.#cutOffMs())
    else if (luck < 0.73) owner.cutOff(this.#cutOffMs())
    else if (luck < 0.76) world.send(proofSubject(0), Buffer.alloc(0))
    else if (luck < 0.82) void owner.stop()
    else if (luck < 0.92) void owner.handOver(events.between(500, 12_000), () => this.#startMore())
    else if (world.rows.size > 0)
      world.deleteRow([...world.rows.keys()][Math.floor(events.random() * world.rows.size)]!)
  }

  #cutOffMs(): number {
    const { short, long } = CUT_OFF_MS
    const { least, most } = this.#events.random() < LONG_CUTS ? long : short
    return this.#events.between(least, most)
  }

  /** The clock of an owner is far ahead for a moment, and then right again. */
  #setClock(): void {
    const events = this.#events
    // Also when nothing new comes any more that would bring its groups to the present.
    if (events.now > this.#end + CLOCKS_STEP_MS) return
    const { shard, life } = this.#owners[Math.floor(events.random() * this.#owners.length)]!
    // What a claim finds is judged by the clock of that moment.
    if (shard.state === 'running') life.aheadMs = AHEAD_MS
    events.after(events.between(20, 600), () => {
      life.aheadMs = 0
      events.after(events.between(50, 900), () => this.#setClock())
    })
  }

  /** Its lease is gone for a while; somebody may take the shard meanwhile. */
  #uncertain(owner: OwnerProcess): void {
    const ms = this.#events.between(100, 2_500)
    owner.loseLease(ms)
    if (this.#events.random() < 0.5) this.#events.after(this.#events.between(20, ms), () => this.#startMore())
  }

  /** Of the buffers one goes on and off, one loses its concurrency, and two are deleted: enabled, and disabled. */
  #configure(): void {
    const events = this.#events
    const half = Math.floor((this.#end - events.now) / 2)
    const toggle = () => {
      if (events.now > this.#end) return
      this.#change(BUFFERS.paused, { enabled: !this.#world.records.get(BUFFERS.paused)!.buffer.enabled })
      events.after(events.between(200, 2_500), toggle)
    }
    events.after(300, toggle)
    events.after(100, () => this.#patch())
    if (events.random() < 0.6)
      events.after(events.between(0, half), () => this.#change(BUFFERS.parallel, { concurrency: 1 }))
    const { deleted, removed } = BUFFERS
    events.after(events.between(0, half), () => this.#change(deleted, { enabled: false }))
    events.after(events.between(half, 2 * half), () => this.#change(deleted, { deleted: true }))
    events.after(events.between(half, 2 * half), () => this.#change(removed, { deleted: true }))
    if (this.#world.restores) events.after(half, () => this.#restore())
  }

  /** Postgres comes back as an older copy: the versions of its rows begin anew. */
  #restore(): void {
    for (const [uid, record] of this.#world.records) {
      this.#world.records.set(uid, { ...record, version: 0 })
      for (const owner of this.#owners) if (!owner.gone) owner.tell(uid)
    }
  }

  /** Somebody changes a buffer again and again, in nothing that its groups go by. */
  #patch(): void {
    const events = this.#events
    if (events.now > this.#end) return
    const uids = Object.values(BUFFERS)
    this.#change(uids[Math.floor(events.random() * uids.length)]!, {})
    events.after(events.between(20, 300), () => this.#patch())
  }

  #change(uid: string, changes: { enabled?: boolean; deleted?: boolean; concurrency?: number }): void {
    const old = this.#world.records.get(uid)!
    const { enabled = old.buffer.enabled, deleted = old.deleted } = changes
    const { concurrency = old.buffer.throughput.maxConcurrencyPerGroup } = changes
    const throughput = { ...old.buffer.throughput, maxConcurrencyPerGroup: concurrency }
    const next = { ...old, version: old.version + 1, deleted, buffer: { ...old.buffer, enabled, throughput } }
    this.#world.records.set(uid, next)
    for (const owner of this.#owners) if (!owner.gone) owner.tell(uid)
  }

  /** What is over stays over: what was looked at once is not looked at again. */
  #settled(): boolean {
    const { accepted } = this.#ingress
    const { truth } = this.#world
    while (this.#over < accepted.length && truth.isOver(accepted[this.#over]!)) this.#over++
    return this.#over === accepted.length && truth.state.batches.size === 0
  }

  #errors(): string[] {
    const { accepted, all, told, unanswered } = this.#ingress
    const world = this.#world
    const settled = this.#settled()
    const errors = [...world.wrong, ...check({ world, accepted, all, told, settled, unanswered })]
    for (const { ended } of this.#owners)
      if (ended && !isExpectedEnd(ended) && world.losses.told === null) errors.push(`ended: ${ended.stack}`)
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
      pauses: this.#owners.reduce((sum, owner) => sum + owner.pauses, 0),
      commits: journal.lastSeq - journal.state().origin! + 1,
      purgedJournal: journal.state().firstSeq - journal.state().origin!,
      purgedInbox: inbox.state().firstSeq - inbox.state().origin!,
      powerCuts: this.#world.powerCuts,
      losses: this.#world.losses.any ? 1 : 0,
      told: this.#world.losses.told === null ? 0 : 1,
    }
  }
}

/** Fenced, or a claim that the network cut short, or a server that was behind: the node claims again. */
function isExpectedEnd(error: Error): boolean {
  // The claim was told to end, or the network cut it short.
  if (/^stopped before|takes no probe/.test(error.message)) return true
  return error instanceof FencedError || error.message === 'no answer' || error.message.includes('was behind')
}
