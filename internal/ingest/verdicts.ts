/**
 * The owner's verdicts on explicit message ids, as an ingress waits for them (docs/architecture/protocol.md,
 * "Duplicates and verdicts"). A stored pack waits at most a second; where an owner kept silent once, its shard's
 * packs are answered at once until it is heard again, and what it says later still counts for the credits.
 *
 * Invariant: each item is settled once, and each `late` promise settles within 60 s of the PubAck, or when `close` has
 * waited for it.
 */
import {
  type Answer,
  askSubject,
  DROP_MEMORY_MS,
  decodeAnswer,
  decodeVerdict,
  encodeAsk,
  type Fate,
  type Verdict,
} from '../domain/verdict.ts'
import type { Clock, Randomness } from '../runtime/clock.ts'
import type { Messages, Stored } from './ports.ts'

/** How long a request waits for a verdict, and for the answer to a question, ms. */
const PATIENCE_MS = 1_000
/** Precision of the waiting, ms. */
const SWEEP_MS = 50
/** Pause before the first question about an unanswered pack; doubled after each, ms. */
const FIRST_ASK_MS = 1_000
/** How long a close waits for what is late, and the first pause between its questions, ms. */
const CLOSE_MS = 3_000
const CLOSING_ASK_MS = 100
/** Packs whose verdict is late, at most; past it the oldest ones stay unknown. */
const MOST_LATE_PACKS = 10_000

export type LateOutcome = 'new' | 'duplicate' | 'unknown'

/** One explicit item of a pack on its way. */
export interface Awaited {
  index: number
  itemId: string
  settle: (stored: Stored) => void
}

interface Late {
  index: number
  itemId: string
  resolve: (outcome: LateOutcome) => void
}

/** A pack with explicit items, from before its append until all of them are settled. */
class Waiting {
  readonly packId: string
  readonly shard: number
  readonly items: readonly Awaited[]
  /** The verdict can be faster than the PubAck. */
  early: Verdict | undefined
  seq = 0
  /** Monotonic ms of the PubAck. */
  storedAt: number | undefined
  late: Late[] = []
  askAt = 0
  askPauseMs = FIRST_ASK_MS
  asked: { id: number; items: Late[] } | undefined

  constructor(packId: string, shard: number, items: readonly Awaited[]) {
    this.packId = packId
    this.shard = shard
    this.items = items
  }
}

export interface VerdictsOptions {
  messages: Messages
  clock: Clock
  randomness: Randomness
}

export class Verdicts {
  /** Where owners send verdicts for this ingress. */
  readonly replySubject: string
  readonly #answerSubject: string
  readonly #messages: Messages
  readonly #clock: Clock
  readonly #unsubscribe: (() => void)[]
  /** All of them, by pack id. */
  readonly #waiting = new Map<string, Waiting>()
  /** Stored and with requests that wait, oldest first. */
  readonly #pressing = new Set<Waiting>()
  /** Their requests are answered; oldest first. */
  readonly #late = new Set<Waiting>()
  readonly #asked = new Map<number, Waiting>()
  readonly #originals = new Map<
    number,
    { until: number; resolve: (itemId: string | null | undefined) => void }
  >()
  readonly #silent = new Set<number>()
  #nextId = 0
  #cancelSweep: (() => void) | undefined
  /** Called when nothing is late any more; defined while a close waits for that. */
  #noneLate: (() => void) | undefined

  constructor({ messages, clock, randomness }: VerdictsOptions) {
    const name = Buffer.from(randomness.bytes(12)).toString('base64url')
    this.replySubject = `ingress.${name}.verdict`
    this.#answerSubject = `ingress.${name}.answer`
    this.#messages = messages
    this.#clock = clock
    this.#unsubscribe = [
      messages.subscribe(this.replySubject, (data) => this.#heardVerdict(decodeVerdict(data))),
      messages.subscribe(this.#answerSubject, (data) => this.#heardAnswer(decodeAnswer(data))),
    ]
  }

  /** Before the append of a pack with these explicit items. */
  expect(packId: string, shard: number, items: readonly Awaited[]): void {
    this.#waiting.set(packId, new Waiting(packId, shard, items))
  }

  /** The append failed: nobody waits for this pack any more. */
  forget(packId: string): void {
    this.#waiting.delete(packId)
  }

  /** The PubAck came; every item is settled within a second from here. */
  stored(packId: string, seq: number): void {
    const waiting = this.#waiting.get(packId)
    if (waiting === undefined) return
    waiting.seq = seq
    waiting.storedAt = this.#clock.monotonic()
    if (waiting.early) this.#judge(waiting, waiting.early)
    else if (this.#silent.has(waiting.shard)) this.#answerWithout(waiting)
    else this.#pressing.add(waiting)
    this.#keepSweeping()
  }

  /** itemId of the buffered item with this id; null: none; undefined: no answer within a second. */
  findOriginal(shard: number, groupToken: string, messageId: string): Promise<string | null | undefined> {
    return new Promise((resolve) => {
      const id = this.#nextId++
      this.#originals.set(id, { until: this.#clock.monotonic() + PATIENCE_MS, resolve })
      const ask = encodeAsk({ kind: 'original', id, groupToken, messageId })
      this.#messages.publish(askSubject(shard), ask, this.#answerSubject)
      this.#keepSweeping()
    })
  }

  /**
   * Answers every request at once. Asks for the verdicts that have not come, for their credits depend on them; settles
   * what stays unknown after 3 s.
   */
  async close(): Promise<void> {
    for (const { resolve } of this.#originals.values()) resolve(undefined)
    this.#originals.clear()
    for (const waiting of [...this.#pressing]) this.#answerWithout(waiting)
    await this.#untilTold()
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#cancelSweep?.()
    this.#cancelSweep = undefined
    for (const waiting of [...this.#late]) this.#giveUp(waiting)
  }

  async #untilTold(): Promise<void> {
    if (this.#late.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#noneLate = resolve
    const cancel = this.#clock.after(CLOSE_MS, resolve)
    const now = this.#clock.monotonic()
    for (const waiting of this.#late) {
      waiting.askPauseMs = CLOSING_ASK_MS / 2
      this.#ask(waiting, now)
    }
    this.#keepSweeping()
    await promise
    cancel()
  }

  #heardVerdict(verdict: Verdict | undefined): void {
    const waiting = verdict && this.#waiting.get(verdict.packId)
    if (!verdict || !waiting) return
    this.#silent.delete(waiting.shard)
    if (waiting.storedAt === undefined) waiting.early = verdict
    else this.#judge(waiting, verdict)
  }

  #judge(waiting: Waiting, { duplicates }: Verdict): void {
    const originals = new Map(duplicates.map(({ index, of }) => [index, of]))
    if (this.#late.has(waiting)) {
      for (const { index, resolve } of waiting.late) resolve(originals.has(index) ? 'duplicate' : 'new')
    } else {
      for (const { index, settle } of waiting.items) settle({ duplicateOf: originals.get(index) ?? null })
    }
    this.#remove(waiting)
  }

  /** Plain 202 for all its items; their verdicts may follow. */
  #answerWithout(waiting: Waiting): void {
    this.#pressing.delete(waiting)
    this.#late.add(waiting)
    waiting.askAt = this.#clock.monotonic() + waiting.askPauseMs
    for (const { index, itemId, settle } of waiting.items) {
      const late = new Promise<LateOutcome>((resolve) => waiting.late.push({ index, itemId, resolve }))
      settle({ duplicateOf: null, late })
    }
    for (const oldest of this.#late) {
      if (this.#late.size <= MOST_LATE_PACKS) break
      this.#giveUp(oldest)
    }
  }

  #giveUp(waiting: Waiting): void {
    for (const { resolve } of waiting.late) resolve('unknown')
    this.#remove(waiting)
  }

  #remove(waiting: Waiting): void {
    this.#waiting.delete(waiting.packId)
    this.#pressing.delete(waiting)
    this.#late.delete(waiting)
    if (waiting.asked) this.#asked.delete(waiting.asked.id)
    if (this.#late.size === 0) this.#noneLate?.()
  }

  #keepSweeping(): void {
    if (this.#pressing.size + this.#late.size + this.#originals.size === 0) return
    this.#cancelSweep ??= this.#clock.after(SWEEP_MS, () => {
      this.#cancelSweep = undefined
      this.#sweep(this.#clock.monotonic())
      this.#keepSweeping()
    })
  }

  #sweep(now: number): void {
    for (const [id, { until, resolve }] of this.#originals) {
      if (until > now) break
      this.#originals.delete(id)
      resolve(undefined)
    }
    for (const waiting of this.#pressing) {
      if (ageOf(waiting, now) < PATIENCE_MS) break
      this.#silent.add(waiting.shard)
      this.#answerWithout(waiting)
    }
    for (const waiting of this.#late) {
      if (ageOf(waiting, now) >= DROP_MEMORY_MS) this.#giveUp(waiting)
      else if (waiting.askAt <= now) this.#ask(waiting, now)
    }
  }

  #ask(waiting: Waiting, now: number): void {
    if (waiting.asked) this.#asked.delete(waiting.asked.id)
    const id = this.#nextId++
    waiting.asked = { id, items: waiting.late }
    this.#asked.set(id, waiting)
    waiting.askPauseMs *= 2
    waiting.askAt = now + waiting.askPauseMs
    const items = waiting.late.map(({ index, itemId }) => ({ index, itemId }))
    const ask = encodeAsk({ kind: 'position', id, seq: waiting.seq, items })
    this.#messages.publish(askSubject(waiting.shard), ask, this.#answerSubject)
  }

  #heardAnswer(answer: Answer | undefined): void {
    if (answer?.kind === 'original') {
      this.#originals.get(answer.id)?.resolve(answer.itemId)
      this.#originals.delete(answer.id)
    } else if (answer) {
      const waiting = this.#asked.get(answer.id)
      if (waiting) this.#learn(waiting, answer.fates)
    }
  }

  #learn(waiting: Waiting, fates: readonly Fate[]): void {
    const asked = waiting.asked?.items ?? []
    waiting.late = asked.filter(({ resolve }, i) => {
      const fate = fates[i]
      if (fate === undefined || fate.kind === 'unknown') return true
      this.#silent.delete(waiting.shard)
      resolve(fate.kind)
      return false
    })
    if (waiting.asked) this.#asked.delete(waiting.asked.id)
    waiting.asked = undefined
    if (waiting.late.length === 0) this.#remove(waiting)
  }
}

function ageOf({ storedAt }: Waiting, now: number): number {
  return storedAt === undefined ? 0 : now - storedAt
}
