/** One owner's process: the real shard over a faulty network to the world. */
import type { BufferRecord } from '../../../internal/domain/model.ts'
import { Semaphore } from '../../../internal/runtime/semaphore.ts'
import {
  type DeadLetters,
  type Deliverer,
  FencedError,
  type ShardTelemetry,
} from '../../../internal/shard/ports.ts'
import { Shard } from '../../../internal/shard/shard.ts'
import { type Events, ProcessLife } from './events.ts'
import { FaultyBroker } from './faulty-broker.ts'
import { REPEATS_MS } from './ingress.ts'
import { Line } from './line.ts'
import type { World } from './world.ts'

const LIMITS = {
  payloadBudget: 1_500,
  payloadMs: 1_000,
  attemptsPerBuffer: 2,
  housekeeping: {
    everyMs: 150,
    purgeLagMs: REPEATS_MS + 100,
    keepRatio: 1,
    keepBytes: 600,
    snapshotBytes: 1_500,
    fullShare: 0.6,
  },
}

export class OwnerProcess {
  readonly life: ProcessLife
  readonly #world: World
  readonly #events: Events
  readonly #line: Line
  readonly #broker: FaultyBroker
  readonly shard: Shard
  ended: Error | null = null
  readonly #listeners = new Set<(record: BufferRecord) => void>()

  /** `onFreeze`: others may take it for dead. */
  constructor(
    world: World,
    number: number,
    records: ReadonlyMap<string, BufferRecord>,
    onFreeze: () => void,
  ) {
    this.#world = world
    this.#events = world.events
    this.life = new ProcessLife(world.events, onFreeze)
    this.#line = new Line(world.events, this.life, () => world.faults)
    this.#broker = new FaultyBroker(world, this.life, this.#line)
    this.shard = new Shard({
      shard: 0,
      boot: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
      claim: 1,
      broker: this.#broker,
      clock: this.life,
      randomness: this.life,
      policies: {
        peek: (uid) => (this.#events.random() < 0.9 ? records.get(uid) : undefined),
        load: (uid) => this.#line.ask(() => records.get(uid)),
        onChange: (listener) => {
          this.#listeners.add(listener)
          return () => this.#listeners.delete(listener)
        },
      },
      deliverer: this.#deliverer(),
      deadLetters: this.#deadLetters(),
      projection: {
        position: () => this.#line.ask(() => world.projected),
        project: async ({ epoch }, position, facts) => {
          if ((await this.#line.act(() => world.project(epoch, position, facts))) === 'fenced')
            throw new FencedError('projection')
        },
      },
      telemetry: this.#telemetry(),
      limits: LIMITS,
      largeWrites: new Semaphore(1),
      onEnd: (error) => {
        this.ended = error
        if (error instanceof FencedError && this.shard.epoch === world.truth.epoch)
          world.wrong.push(`fenced without another claim: ${error.message}`)
      },
    })
    this.shard.start().catch((error: unknown) => {
      this.ended ??= error as Error
      if (!(error instanceof FencedError) && !this.life.killed) this.ended = error as Error
    })
  }

  /** The change feed: late, but it comes. */
  tell(record: BufferRecord): void {
    this.life.after(this.#events.between(0, 100), () => {
      for (const listener of this.#listeners) listener(record)
    })
  }

  kill(): void {
    this.life.kill()
  }

  reconnect(): void {
    this.#broker.reconnect()
  }

  get gone(): boolean {
    return this.life.killed || this.ended !== null
  }

  #deliverer(): Deliverer {
    return {
      attempt: async ({ key, body, proceed }) => {
        const none = {
          delivered: false,
          retryable: true,
          statusCode: 0,
          errorClass: null,
          error: 'lost',
          durationMs: 1,
          responseBody: null,
        }
        if (proceed && !proceed()) return { ...none, unsent: true }
        const bytes = Buffer.from(body)
        // Some destinations think for longer than a hand-over takes.
        if (this.#events.random() < 0.1) {
          const thinking = this.#events.between(100, 3_000)
          await new Promise<void>((resume) => this.life.after(thinking, resume))
        }
        const status = await this.#line
          .act(() => this.#world.deliver(key, bytes, this.shard.epoch))
          .catch(() => 0)
        const rejected = status >= 400 && status < 500
        return {
          ...none,
          delivered: status === 200,
          retryable: status !== 200 && !rejected,
          statusCode: status,
        }
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
      raiseEpoch: async ({ epoch }) => {
        fenced(await this.#line.act(() => world.raise(epoch)))
      },
      known: async ({ epoch }, names) => fenced(await this.#line.ask(() => world.known(epoch, names))),
      // All bodies here are small: they go with `write`.
      upload: async () => {},
      write: async ({ epoch }, batch) => {
        await this.#line.hesitate(0.3)
        if (!world.holds('postgres-lock')) {
          if (await this.#line.ask(() => world.fences(epoch))) throw new FencedError('Postgres')
          await this.#line.hesitate(0.3)
        }
        const outcome = fenced(await this.#line.act(() => world.writeDeadLetter(epoch, batch)))
        this.#line.endanger(0.15)
        return { outcome, paused: false }
      },
      forgetTombstones: async (_fence, names) => {
        await this.#line.act(() => {
          for (const { groupId, version } of names) world.tombstones.delete(`${groupId}:${version}`)
        })
      },
    }
  }

  #telemetry(): ShardTelemetry {
    const nothing = () => {}
    const { wrong, truth } = this.#world
    return {
      ownership: nothing,
      flush: nothing,
      delivery: nothing,
      dead: nothing,
      discarded: nothing,
      dropped: nothing,
      commit: nothing,
      gauges: nothing,
      problem: ({ what, error }) => {
        // Only after a commit of its own an owner says so.
        if (what.includes('rebuilt')) wrong.push(`${what}: ${error}`)
        // Who lost its shard sees the purges of its successor, until its next commit tells.
        if (this.shard.epoch < truth.epoch) return
        if (what.includes('missing') || (what === 'housekeeping' && !error.includes('no answer')))
          wrong.push(`${what}: ${error}`)
      },
    }
  }
}
