/** The broker as one process reaches it: the simulated streams and messages at the end of its line. */
import type {
  AppendAnswer,
  Archive,
  Broker,
  Log,
  LogMessage,
  Reading,
} from '../../../internal/shard/broker.ts'
import type { Events, ProcessLife } from './events.ts'
import { Line } from './line.ts'
import type { Stream } from './streams.ts'
import type { Earlier, World } from './world.ts'

const POLL_MS = 15
/** Core messages that nobody gets. */
const LOST = 0.04
/** Appends that the broker refuses for the moment. */
const REFUSED = 0.02
/** Readings of the inbox that are handed over twice. */
const REPEATED = 0.1
/** Answers that an old leader gives before the new one. */
const OLD_ANSWERS = 0.5
/** Messages of one answer, at most. */
const READ_AT_ONCE = { follow: 4, range: 25 }

const NO_ANSWER: AppendAnswer = { kind: 'unknown', error: 'no answer' }

type Append = (data: Uint8Array, msgId: string, expect?: number) => AppendAnswer
type Name = 'inbox' | 'journal'

export class FaultyBroker implements Broker {
  readonly #world: World
  readonly #events: Events
  readonly #life: ProcessLife
  readonly #line: Line
  readonly #inbox: Log
  readonly #journal: Log
  readonly #archive: Archive
  readonly #onSaid: (data: Uint8Array) => void
  readonly #reconnected = new Set<() => void>()
  /** What the server knows that this process is connected to; null: it is not cut off from its peers. */
  #cutOff: Earlier | null = null
  /** What a server knows that was the leader and answers as if it still were; null: there is none. */
  #oldLeader: Earlier | null = null
  #connections = 0
  /** null: there is none. */
  #connection: number | null = 0
  /** The last sequences that the process was told of: of what it has read, and of its own commits. */
  readonly known: Record<Name, number> = { inbox: 0, journal: 0 }

  /** `onSaid`: the process publishes this, whether or not it arrives. */
  constructor(world: World, life: ProcessLife, onSaid: (data: Uint8Array) => void) {
    this.#world = world
    this.#onSaid = onSaid
    this.#events = world.events
    this.#life = life
    this.#line = new Line(
      world.events,
      life,
      () => world.faults,
      () => this.#connection,
    )
    if (world.downUntil > world.events.now) this.disconnect(world.downUntil - world.events.now)
    this.#inbox = this.#log('inbox', (data, msgId) => world.appendInbox(data, msgId))
    this.#journal = this.#log('journal', (...append) => world.appendJournal(...append))
    this.#archive = this.#archiveOf(world)
  }

  inbox(): Log {
    return this.#inbox
  }

  journal(): Log {
    return this.#journal
  }

  archive(): Archive {
    return this.#archive
  }

  publish(subject: string, data: Uint8Array, reply?: string): void {
    this.#onSaid(data)
    if (this.#cutOff || this.#connection === null) return
    if (!this.#world.faults || this.#events.random() >= LOST) this.#world.send(subject, data, reply)
  }

  tell(subject: string, data: Uint8Array): void {
    this.publish(subject, data)
  }

  subscribe(subject: string, handler: (data: Uint8Array, reply?: string) => void): () => void {
    return this.#world.subscribe(subject, (bytes, reply) => {
      if (this.#connection !== null) this.#life.after(0, () => handler(bytes, reply))
    })
  }

  onReconnect(listener: () => void): () => void {
    this.#reconnected.add(listener)
    return () => this.#reconnected.delete(listener)
  }

  reconnect(): void {
    this.#life.after(0, () => this.#tellReconnected())
  }

  #tellReconnected(): void {
    for (const listener of this.#reconnected) listener()
  }

  /** All servers are gone for `ms`, and what stood in the connection is. */
  disconnect(ms: number): void {
    const connection = ++this.#connections
    this.#connection = null
    this.#cutOff = null
    this.#oldLeader = null
    this.#events.after(ms, () => {
      // The process sends nothing before it knows: one that stands still learns of it when it goes on.
      this.#life.after(0, () => {
        if (connection !== this.#connections) return
        this.#connection = connection
        this.#tellReconnected()
      })
    })
  }

  /** For `ms` a server that was the leader some time ago answers reads now and then, before the present one. */
  besideOldLeader(ms: number): void {
    const old = this.#world.earlier()
    this.#oldLeader = old
    this.#events.after(ms, () => {
      if (this.#oldLeader === old) this.#oldLeader = null
    })
  }

  /** For `ms` connected to a server that is cut off from its peers, with what it had when that began. It takes itself for the leader. */
  cutOff(ms: number): void {
    const connections = this.#connections
    this.#cutOff = this.#world.earlier()
    this.reconnect()
    this.#events.after(ms, () => {
      if (connections !== this.#connections) return
      this.#cutOff = null
      this.reconnect()
    })
  }

  #log(name: Name, append: Append): Log {
    const line = this.#line
    const stream = () => this.#cutOff?.[name] ?? this.#oldAnswers()?.[name] ?? this.#world[name]
    return {
      append: async (data, { msgId, expectLastSeq }) => {
        const by = this.#cutOff ? this.#refused(name, expectLastSeq) : append
        const answer = await this.#append(by, data, msgId, expectLastSeq)
        if (answer.kind === 'stored') this.#knows(name, answer.seq)
        return answer
      },
      state: () => line.ask(() => stream().state()),
      get: (seq) => line.ask(() => stream().get(seq)),
      last: () => line.ask(() => stream().messages.at(-1)),
      purgeBelow: (seq) =>
        this.#cutOff
          ? line.noAnswer()
          : line.actLate(() => this.#world[name].purgeBelow(seq), this.#world.repeatsPurges),
      range: (from, to) => this.#range(stream, from, to),
      follow: (from, handler) => this.#follow(name, stream, from, handler),
    }
  }

  #archiveOf({ archive, events, repeatsPurges }: World): Archive {
    const line = this.#line
    const known = () => this.#cutOff?.archive ?? this.#oldAnswers()?.archive ?? archive
    return {
      append: (data, { msgId, subject }) => {
        const append: Append = (bytes, id) => archive.append(events.now, bytes, id, subject)
        return this.#append(this.#cutOff ? () => NO_ANSWER : append, data, msgId)
      },
      state: () => line.ask(() => known().state()),
      list: (filter) => line.ask(() => known().list(filter)),
      lastOf: (subject) => line.ask(() => known().lastOf(subject)),
      remove: (filter) =>
        this.#cutOff ? line.noAnswer() : line.actLate(() => archive.remove(filter), repeatsPurges),
    }
  }

  #knows(name: Name, seq: number): void {
    this.known[name] = Math.max(this.known[name], seq)
  }

  #oldAnswers(): Earlier | null {
    return this.#oldLeader && this.#events.random() < OLD_ANSWERS ? this.#oldLeader : null
  }

  /** A server without its peers looks at the expectation, and stores nothing. */
  #refused(name: Name, expect: number | undefined): Append {
    const last = this.#cutOff![name].lastSeq
    return () => (expect !== undefined && expect !== last ? { kind: 'wrong-sequence' } : NO_ANSWER)
  }

  async #append(append: Append, data: Uint8Array, msgId: string, expect?: number): Promise<AppendAnswer> {
    const bytes = Buffer.from(data)
    const refusal = this.#refusal()
    try {
      return await this.#line.act(() => refusal ?? append(bytes, msgId, expect))
    } catch {
      return NO_ANSWER
    }
  }

  #refusal(): AppendAnswer | null {
    if (!this.#world.faults || this.#events.random() >= REFUSED) return null
    return { kind: this.#events.random() < 0.5 ? 'full' : 'in-process' }
  }

  /** Not in one step: others append and purge meanwhile. */
  async *#range(stream: () => Stream, from: number, to: number): AsyncIterable<LogMessage> {
    for (let next = from; next <= to; ) {
      await this.#line.hesitate(0.05)
      const count = this.#events.between(1, READ_AT_ONCE.range)
      const messages = await this.#line.ask(() => stream().from(next, count))
      for (const message of messages) if (message.seq <= to) yield message
      next = (messages.at(-1)?.seq ?? to) + 1
    }
  }

  #follow(
    name: Name,
    stream: () => Stream,
    from: number,
    handler: (messages: LogMessage[]) => void | Promise<void>,
  ): Reading {
    let cursor = from
    let stopped = false
    const poll = () => {
      if (stopped) return
      this.#line
        .ask(() => stream().from(cursor, this.#events.between(1, READ_AT_ONCE.follow)))
        .then(async (messages) => {
          if (stopped || messages.length === 0) return
          this.#knows(name, messages.at(-1)!.seq)
          if (!this.#world.faults || this.#events.random() >= REPEATED) cursor = messages.at(-1)!.seq + 1
          await handler(messages)
        })
        .catch(() => {})
        .finally(() => this.#life.after(POLL_MS, poll))
    }
    this.#life.after(0, poll)
    return {
      stop: async () => {
        stopped = true
      },
    }
  }
}
