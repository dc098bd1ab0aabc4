/** One owner's process: the real shard over a faulty network to the world. */
import type { BufferRecord } from '../../../internal/domain/model.ts'
import type { AppendAnswer, Broker, Log, LogMessage } from '../../../internal/shard/broker.ts'
import {
  type DeadLetters,
  type Deliverer,
  FencedError,
  type ShardTelemetry,
} from '../../../internal/shard/ports.ts'
import { Shard } from '../../../internal/shard/shard.ts'
import { type Events, ProcessLife } from './events.ts'
import type { Stream } from './streams.ts'
import type { World } from './world.ts'

const LOST = 0.04
const LIMITS = {
  payloadBudget: 1_500,
  attemptsPerBuffer: 2,
  housekeeping: {
    everyMs: 150,
    purgeLagMs: 3_000,
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
  readonly shard: Shard
  ended: Error | null = null
  readonly #listeners = new Set<(record: BufferRecord) => void>()

  constructor(world: World, number: number, records: Map<string, BufferRecord>) {
    this.#world = world
    this.#events = world.events
    this.life = new ProcessLife(world.events)
    this.shard = new Shard({
      shard: 0,
      boot: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
      claim: 1,
      broker: this.#broker(),
      clock: this.life,
      randomness: this.life,
      policies: {
        peek: (uid) => (this.#events.random() < 0.9 ? records.get(uid) : undefined),
        load: (uid) => this.#call(() => records.get(uid)),
        onChange: (listener) => {
          this.#listeners.add(listener)
          return () => this.#listeners.delete(listener)
        },
      },
      deliverer: this.#deliverer(),
      deadLetters: this.#deadLetters(),
      projection: {
        position: () => this.#call(() => world.projected),
        project: async ({ epoch }, position, facts) => {
          if ((await this.#call(() => world.project(epoch, position, facts))) === 'fenced')
            throw new FencedError('projection')
        },
      },
      telemetry: this.#telemetry(),
      limits: LIMITS,
      onEnd: (error) => {
        this.ended = error
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
    this.life.killed = true
  }

  get gone(): boolean {
    return this.life.killed || this.ended !== null
  }

  /** Request, atomic step, answer; either way may get lost: then it rejects after a while, done or not. */
  #call<T>(step: () => T): Promise<T> {
    const { random } = this.#events
    return new Promise((resolve, reject) => {
      const lost = this.#world.faults && random() < LOST
      const before = random() < 0.5
      const giveUp = () => this.life.after(200, () => reject(new Error('no answer')))
      if (lost && before) return giveUp()
      this.#events.after(this.#events.between(0, 6), () => {
        // What was on its way when the process died arrives or not.
        if (this.life.killed && random() < 0.5) return
        const value = step()
        if (lost) return giveUp()
        this.life.after(this.#events.between(0, 6), () => resolve(value))
      })
    })
  }

  /** Sometimes a process stops between a decision and its write, long enough for another owner to take over. */
  #stall(): Promise<void> {
    if (this.#world.faults && this.#events.random() < 0.3) {
      this.life.pausedUntil = this.#events.now + this.#events.between(200, 4_000)
    }
    return new Promise((resume) => this.life.after(0, resume))
  }

  #broker(): Broker {
    const world = this.#world
    const inbox = this.#log(world.inbox, () => ({
      kind: 'unknown',
      error: 'owners do not append to the inbox',
    }))
    const journal = this.#log(world.journal, (data, msgId, expect) =>
      world.appendJournal(data, msgId, expect),
    )
    return {
      inbox: () => inbox,
      journal: () => journal,
      publish: (subject, data, reply) => {
        const bytes = Buffer.from(data)
        this.#events.after(this.#events.between(0, 6), () => {
          if (world.faults && this.#events.random() < LOST) return
          for (const handler of world.subscribers.get(subject) ?? []) handler(bytes, reply)
        })
      },
      subscribe: (subject, handler) => {
        const hear = (bytes: Uint8Array, reply?: string) => this.life.after(0, () => handler(bytes, reply))
        const hearers = world.subscribers.get(subject) ?? new Set()
        world.subscribers.set(subject, hearers.add(hear))
        return () => hearers.delete(hear)
      },
      onReconnect: () => () => {},
    }
  }

  #log(stream: Stream, append: (data: Uint8Array, msgId: string, expect?: number) => AppendAnswer): Log {
    const call = <T>(step: () => T) => this.#call(step)
    return {
      append: (data, { msgId, expectLastSeq }) => {
        const bytes = Buffer.from(data)
        return this.#call(() => append(bytes, msgId, expectLastSeq)).catch(
          () => ({ kind: 'unknown', error: 'no answer' }) as const,
        )
      },
      state: () => call(() => stream.state()),
      get: (seq) => call(() => stream.get(seq)),
      last: () => call(() => stream.messages.at(-1)),
      purgeBelow: (seq) => call(() => stream.purgeBelow(seq)),
      async *range(from, to) {
        const messages = await call(() => stream.messages.filter(({ seq }) => seq >= from && seq <= to))
        yield* messages
      },
      follow: (from, handler) => this.#follow(stream, from, handler),
    }
  }

  #follow(stream: Stream, from: number, handler: (messages: LogMessage[]) => void | Promise<void>) {
    let cursor = from
    let stopped = false
    const poll = () => {
      if (stopped) return
      this.#call(() =>
        stream.messages.filter(({ seq }) => seq >= cursor).slice(0, this.#events.between(1, 4)),
      )
        .then(async (messages) => {
          if (stopped || messages.length === 0) return
          // Now and then something is read twice.
          if (!this.#world.faults || this.#events.random() < 0.9) cursor = messages.at(-1)!.seq + 1
          await handler(messages)
        })
        .catch(() => {})
        .finally(() => this.life.after(15, poll))
    }
    this.life.after(0, poll)
    return {
      stop: async () => {
        stopped = true
      },
    }
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
        const status = await this.#call(() => this.#world.deliver(key, bytes, this.shard.epoch)).catch(
          () => 0,
        )
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
        fenced(await this.#call(() => world.raise(epoch)))
      },
      known: async ({ epoch }, names) => fenced(await this.#call(() => world.known(epoch, names))),
      bury: async ({ epoch }, batch) => {
        await this.#stall()
        const outcome = fenced(await this.#call(() => world.bury(epoch, batch)))
        return { outcome, paused: false }
      },
      forgetTombstones: async (_fence, names) => {
        await this.#call(() => {
          for (const { groupId, version } of names) world.tombstones.delete(`${groupId}:${version}`)
        })
      },
    }
  }

  #telemetry(): ShardTelemetry {
    const nothing = () => {}
    const { wrong } = this.#world
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
        if (
          what.includes('missing') ||
          what.includes('rebuilt') ||
          (what === 'housekeeping' && !error.includes('no answer'))
        ) {
          wrong.push(`${what}: ${error}`)
        }
      },
    }
  }
}
