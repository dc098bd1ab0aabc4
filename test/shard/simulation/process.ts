/** One owner's process: the real shard over a faulty network to the world. */
import type { BufferRecord } from '../../../internal/domain/model.ts'
import { Semaphore } from '../../../internal/runtime/semaphore.ts'
import { batchKey } from '../../../internal/shard/journal/batch-name.ts'
import { JournalClosedError } from '../../../internal/shard/journal/journal.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import {
  type DeadLetters,
  FencedError,
  type Policies,
  type ShardTelemetry,
} from '../../../internal/shard/ports.ts'
import { Shard } from '../../../internal/shard/shard.ts'
import { destination } from './deliveries.ts'
import { type Events, ProcessLife } from './events.ts'
import { FaultyBroker } from './faulty-broker.ts'
import { REPEATS_MS } from './ingress.ts'
import { Line } from './line.ts'
import { KnownBuffers, type Owner } from './owner.ts'
import { SYNCED_MS, type World } from './world.ts'

const LIMITS = {
  payloadBudget: 1_500,
  payloadMs: 1_000,
  attemptsPerBuffer: 2,
  factsAtOnce: 2,
  housekeeping: {
    everyMs: 150,
    purgeLagMs: REPEATS_MS + 100,
    syncLagMs: 0,
    keepRatio: 1,
    keepBytes: 600,
    snapshotBytes: 1_500,
    partBytes: 1_000,
    fullShare: 0.6,
  },
}

/** The broker of a limited journal syncs so often, ms: what is cut off it takes room for longer. */
const IN_A_LIMITED_JOURNAL = { syncLagMs: 300 }

/** Where the servers answer before they sync: what was answered is on disk after so long, ms. */
const WHERE_SYNCED_LATER = { syncLagMs: SYNCED_MS + 100 }

function limitsOf({ limited, syncsLater }: World): typeof LIMITS {
  const housekeeping = {
    ...LIMITS.housekeeping,
    ...(limited && IN_A_LIMITED_JOURNAL),
    ...(syncsLater && WHERE_SYNCED_LATER),
  }
  return { ...LIMITS, housekeeping }
}

/** A node notices within so long that its lease is not certain any more, ms. */
const NOTICED_MS = 60
/** Of processes that froze: their lease was not renewed meanwhile. */
const LEASE_LOST = 0.3

export class OwnerProcess implements Owner {
  readonly life: ProcessLife
  readonly boot: string
  readonly #world: World
  readonly #events: Events
  readonly #line: Line
  readonly #broker: FaultyBroker
  readonly shard: Shard
  ended: Error | null = null
  readonly #listeners = new Set<(record: BufferRecord) => void>()
  readonly buffers = new KnownBuffers()
  uncertain = false
  misled = false
  certainSince = 0
  leavingSince: number | null = null
  /** How often its node lost its lease for a while. */
  pauses = 0

  /** `onFreeze`: others may take it for dead. */
  constructor(world: World, number: number, onFreeze: () => void) {
    this.#world = world
    this.#events = world.events
    this.boot = `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
    this.life = new ProcessLife(world.events, () => {
      if (world.events.random() < LEASE_LOST) this.loseLease(world.events.between(100, 1_000))
      onFreeze()
    })
    this.#line = new Line(world.events, this.life, () => world.faults)
    this.#broker = new FaultyBroker(world, this.life, (data) => world.verdicts.said(this, data))
    this.shard = new Shard({
      shard: 0,
      boot: this.boot,
      claim: 1,
      broker: this.#broker,
      clock: this.life,
      randomness: this.life,
      policies: this.#policies(),
      deliverer: destination(world, this, this.life, this.#line),
      deadLetters: this.#deadLetters(),
      projection: {
        position: () => this.#line.ask(() => world.counted.seq),
        project: async (fence, position, facts) => {
          if ((await this.#line.act(() => world.project(fence, position, facts))) === 'fenced')
            throw new FencedError('projection')
        },
      },
      telemetry: this.#telemetry(),
      limits: limitsOf(world),
      largeWrites: new Semaphore(1),
      holds: () => !this.uncertain,
      onEnd: (error) => this.#end(error),
    })
    this.shard.start().catch((error: unknown) => {
      this.ended ??= error as Error
      // A reconnect meanwhile may have told first why.
      if (error instanceof JournalClosedError) return
      if (!(error instanceof FencedError) && !this.life.killed) this.#end(error as Error)
    })
  }

  #end(error: Error): void {
    const { losses, truth, wrong } = this.#world
    this.ended = error
    if (error instanceof LostTailError && !this.life.killed) losses.tells(error)
    // Postgres may know of a claim that the journal has lost.
    if (error instanceof FencedError && this.shard.epoch === truth.epoch && !losses.lost.journal)
      wrong.push(`fenced without another claim: ${error.message}`)
  }

  /** The last sequences of both logs that it was told of. */
  get known(): FaultyBroker['known'] {
    // What was handed over and has no place yet is read again behind a reconnect.
    const taken = (this.shard.figures(0)?.cursor ?? 0) - 1
    return { ...this.#broker.known, inbox: Math.min(this.#broker.known.inbox, taken) }
  }

  get epoch(): number {
    return this.shard.epoch
  }

  get killed(): boolean {
    return this.life.killed
  }

  /** Its node is not certain of its lease for `ms`, and notices a little later. */
  loseLease(ms: number): void {
    if (this.uncertain) return
    this.uncertain = true
    this.pauses++
    this.life.after(this.#events.between(0, NOTICED_MS), () => {
      this.shard.pause(true)
      this.life.after(ms, () => this.#regainLease())
    })
  }

  #regainLease(): void {
    this.uncertain = false
    this.certainSince = this.#events.now
    this.shard.pause(false)
  }

  /** Ends in good order, with nobody to take it over. */
  async stop(): Promise<void> {
    this.leavingSince ??= this.#events.now
    await this.shard.stop(1_000)
    this.kill()
  }

  /** Gives the shard to whoever `released` starts. */
  async handOver(timeoutMs: number, released: () => void): Promise<void> {
    this.leavingSince ??= this.#events.now
    await this.shard.handOver(timeoutMs, released)
    this.kill()
  }

  /** The change feed: late, but it comes, and what it tells of is read anew. */
  tell(uid: string): void {
    this.life.after(this.#events.between(0, 100), () => {
      const record = this.#world.records.get(uid)!
      this.buffers.learn(record)
      for (const listener of this.#listeners) listener(record)
    })
  }

  kill(): void {
    this.life.kill()
  }

  reconnect(): void {
    this.#broker.reconnect()
  }

  /** All servers of the broker are gone for `ms`. */
  disconnect(ms: number): void {
    this.#broker.disconnect(ms)
  }

  /** For `ms` a server that was the leader answers, too. */
  besideOldLeader(ms: number): void {
    this.#broker.besideOldLeader(ms)
  }

  /** Connected for `ms` to a server that is cut off from its peers. */
  cutOff(ms: number): void {
    this.#broker.cutOff(ms)
  }

  get gone(): boolean {
    return this.life.killed || this.ended !== null
  }

  #policies(): Policies {
    const { records } = this.#world
    const learned = (record: BufferRecord | undefined) => {
      if (record) this.buffers.learn(record)
      return record
    }
    // An answer that is late takes the place of nothing that was told meanwhile.
    const load = async (uid: string) => {
      const told = this.buffers.get(uid)
      const read = await this.#line.ask(() => records.get(uid))
      const now = this.buffers.get(uid)
      return now === told ? learned(read) : now
    }
    return {
      peek: (uid) => (this.#events.random() < 0.9 ? learned(records.get(uid)) : undefined),
      load,
      onChange: (listener) => {
        this.#listeners.add(listener)
        return () => this.#listeners.delete(listener)
      },
    }
  }

  #deadLetters(): DeadLetters {
    const world = this.#world
    const fenced = <T>(answer: T | 'fenced'): T => {
      if (answer === 'fenced') throw new FencedError('Postgres')
      return answer as T
    }
    return {
      remembered: () => this.#line.ask(() => ({ claim: world.claim, counted: world.counted })),
      replaceEpoch: (fence, known) => this.#line.act(() => world.replaceEpoch(fence, known)),
      raiseEpoch: async (fence) => {
        fenced(await this.#line.act(() => world.raise(fence)))
      },
      known: async (fence, names) => {
        await this.#line.whenSlow()
        return fenced(await this.#line.ask(() => world.known(fence, names)))
      },
      // All bodies here are small: they go with `write`.
      upload: async () => {},
      write: async (fence, batch) => {
        await this.#line.whenSlow()
        await this.#line.hesitate(0.3)
        if (!world.holds('postgres-lock')) {
          if (await this.#line.ask(() => world.fences(fence))) throw new FencedError('Postgres')
          await this.#line.hesitate(0.3)
        }
        const outcome = fenced(await this.#line.act(() => world.writeDeadLetter(fence, batch)))
        this.#line.endanger(0.15)
        return { outcome, dlqId: batch.dlqId, paused: false }
      },
      forgetTombstones: async (_fence, names) => {
        await this.#line.act(() => {
          for (const { groupId, version } of names) world.tombstones.delete(`${groupId}:${version}`)
        })
      },
    }
  }

  #judgeFlush({ groupId, version, latenessMs }: Parameters<ShardTelemetry['flush']>[0]): void {
    const { truth, records, flushes, clocksStep } = this.#world
    if (clocksStep) return
    const batch = truth.batch({ groupId, version })
    const delayMs = batch && records.get(batch.seal.bufferUid)!.buffer.throughput.minDelayBetweenFlushMs
    const at = this.life.now()
    if (delayMs) flushes.flushed(this, groupId, { at, dueAt: at - latenessMs, delayMs })
  }

  #telemetry(): ShardTelemetry {
    const nothing = () => {}
    const world = this.#world
    const { wrong, truth, attempts } = world
    return {
      ownership: ({ state }) => {
        if (state === 'replaying' && !this.misled) world.claims.folded(this.shard)
      },
      flush: (flush) => this.#judgeFlush(flush),
      delivery: ({ groupId, version, attempt }) => {
        const number = attempts.numberOf(this, batchKey({ groupId, version }))
        if (attempt !== number && !this.misled)
          wrong.push(`attempt ${number} of ${groupId}:${version} is told as ${attempt}`)
      },
      dead: nothing,
      paused: nothing,
      discarded: nothing,
      dropped: nothing,
      commit: nothing,
      gauges: nothing,
      problem: ({ what, error }) => {
        if (this.misled) return
        // Only after a commit of its own an owner says so.
        if (what.includes('rebuilt')) wrong.push(`${what}: ${error}`)
        // Who lost its shard sees the purges of its successor, until its next commit tells.
        if (this.shard.epoch < truth.epoch) return
        if (what.includes('missing') || (what === 'housekeeping' && !/no answer|was behind/.test(error)))
          wrong.push(`${what}: ${error}`)
      },
    }
  }
}
