/**
 * The rules of a group (docs/architecture/protocol.md, "Groups" and "Segments"), written down the slow
 * way: every question is answered by looking through everything. What the machine must agree with.
 */
import type { FlushReason } from '../../internal/domain/model.ts'
import type { Batch, Effect, GroupPolicy, Input } from '../../internal/group/model.ts'
import type { NamedItem } from './notation.ts'

interface Waiting {
  readonly item: NamedItem
  readonly segment: number
}

type NaiveBatch = Batch<NamedItem>
type NaiveEffect = Effect<NamedItem>

export class NaiveGroup {
  now: number
  waiting: Waiting[] = []
  batches: NaiveBatch[] = []
  #policy: GroupPolicy
  #openSegment = 0
  #openIsFull = false
  #lastSealAt: number
  #blockedUntil = Number.NEGATIVE_INFINITY
  #sizedSince: number | undefined
  /** When items came; the machine sets its own back in the items. */
  readonly #times = new Map<NamedItem, number>()

  constructor(policy: GroupPolicy, at: number, lastSealAt = Number.NEGATIVE_INFINITY) {
    this.#policy = policy
    this.#lastSealAt = lastSealAt
    this.now = at
  }

  /** Effects but for wakes. */
  step(input: Input<NamedItem>): NaiveEffect[] {
    if (input.at < this.now) this.#setBack(input.at)
    this.now = input.at
    const blockedBefore = this.#blocked() && this.#policy.state !== 'unknown'
    const effects = this.#apply(input)
    this.#noteFullness()
    this.#noteSizes(input.kind === 'item' ? Math.min(input.item.at, this.now) : this.now)
    if (input.kind === 'unsealed') {
      this.#blockedUntil = Math.min(input.batch.dueAt, this.now)
      this.#sizedSince &&= Math.min(this.#sizedSince, input.batch.dueAt)
      return effects
    }
    if (blockedBefore && !this.#blocked()) this.#blockedUntil = this.now
    if (input.kind === 'dropped') return effects
    const pending = this.#pending(this.now)
    for (const effect of pending) this.#carryOut(effect)
    return [...effects, ...pending, ...this.#farewell()]
  }

  /** The first later time at which a tick does something. */
  nextUseful(): number | undefined {
    const { idleTimeoutMs, maxWaitFromFirstMs, minDelayBetweenFlushMs } = this.#policy
    const times = [
      this.#lastSealAt + minDelayBetweenFlushMs,
      ...this.batches.map((batch) => batch.nextAttemptAt),
    ]
    for (const { item } of this.waiting)
      times.push(this.#at(item) + idleTimeoutMs, this.#at(item) + maxWaitFromFirstMs)
    const later = times.filter((time) => time > this.now).sort((a, b) => a - b)
    return later.find((time) => this.#pending(time).length > 0)
  }

  #at(item: NamedItem): number {
    return this.#times.get(item)!
  }

  /** Nothing that was noted is later than now, and no attempt is further away than its delay. */
  #setBack(now: number): void {
    this.#lastSealAt = Math.min(this.#lastSealAt, now)
    this.#blockedUntil = Math.min(this.#blockedUntil, now)
    this.#sizedSince &&= Math.min(this.#sizedSince, now)
    for (const [item, at] of this.#times) this.#times.set(item, Math.min(at, now))
    for (const batch of this.batches)
      batch.nextAttemptAt = Math.min(batch.nextAttemptAt, now + this.#delayBefore(batch.attempt))
  }

  #apply(input: Input<NamedItem>): NaiveEffect[] {
    switch (input.kind) {
      case 'item':
        this.#times.set(input.item, input.item.at)
        if (this.#empty()) this.#backToSegment(0)
        else if (this.#openIsFull) this.#backToSegment(this.#openSegment + 1)
        this.waiting.push({ item: input.item, segment: this.#openSegment })
        break
      case 'sealed':
        Object.assign(input.batch, { version: input.version, nextAttemptAt: this.now, phase: 'waiting' })
        break
      case 'unsealed':
        this.batches = this.batches.filter((batch) => batch !== input.batch)
        this.waiting.unshift(...input.batch.items.map((item) => ({ item, segment: input.batch.segment })))
        this.#lastSealAt = Number.NEGATIVE_INFINITY
        break
      case 'restored':
        this.#restore(input)
        break
      case 'result':
        return [this.#ended(input.batch, input.result)]
      case 'withdrawn':
        Object.assign(input.batch, { nextAttemptAt: input.notBefore, phase: 'waiting' })
        break
      case 'attempt-recorded':
        input.batch.phase = 'waiting'
        break
      case 'settled':
        this.batches = this.batches.filter((batch) => batch !== input.batch)
        break
      case 'dropped':
        this.waiting = this.waiting.filter(({ item }) => item !== input.item)
        break
      case 'policy':
        this.#learn(input.policy)
        for (const batch of this.batches) {
          batch.nextAttemptAt = Math.min(batch.nextAttemptAt, this.now + this.#delayBefore(batch.attempt))
        }
    }
    return []
  }

  /** What came before the policy was known stood in one segment: it comes anew. */
  #learn(policy: GroupPolicy): void {
    const placed = this.#policy.state !== 'unknown' || policy.state === 'unknown'
    this.#policy = policy
    if (placed) return
    for (const { item } of this.waiting.splice(0)) {
      if (this.#openIsFull) this.#backToSegment(this.#openSegment + 1)
      this.waiting.push({ item, segment: this.#openSegment })
      this.#noteFullness()
      this.#noteSizes(Math.min(this.#at(item), this.now))
    }
  }

  #restore(input: Extract<Input<NamedItem>, { kind: 'restored' }>): void {
    const { items, version, segment } = input
    const attempt = input.running ? Math.max(1, input.attempt) : input.attempt
    if (this.#empty()) this.#backToSegment(0)
    const first = this.waiting[0]?.segment ?? this.#openSegment
    if (segment > first) {
      this.#openSegment += segment - first
      this.waiting = this.waiting.map((one) => ({ ...one, segment: one.segment + segment - first }))
    }
    const nextAttemptAt = Math.min(input.nextAttemptAt, this.now + this.#delayBefore(attempt))
    const bytes = total(items)
    const rest = { items, bytes, segment, version, attempt, nextAttemptAt }
    const phase = input.running ? 'delivering' : 'waiting'
    this.batches.push({ ...rest, reason: 'max_wait', dueAt: this.now, phase })
    const age = (batch: NaiveBatch) => batch.version || Number.POSITIVE_INFINITY
    this.batches.sort((a, b) => age(a) - age(b))
    this.#lastSealAt = this.now
  }

  #ended(batch: NaiveBatch, result: 'delivered' | 'retry' | 'rejected'): NaiveEffect {
    if (result === 'delivered') return this.#move(batch, 'acking', { kind: 'ack', batch })
    if (this.#policy.state === 'discarding') {
      return this.#move(batch, 'discarding', { kind: 'discard', items: batch.items, batch })
    }
    if (result === 'rejected') {
      return this.#move(batch, 'dead-lettering', {
        kind: 'dead-letter',
        batch,
        reason: 'non_retryable_error',
      })
    }
    if (batch.attempt >= this.#policy.maxAttempts) {
      return this.#move(batch, 'dead-lettering', {
        kind: 'dead-letter',
        batch,
        reason: 'max_retries_exceeded',
      })
    }
    batch.attempt += 1
    batch.nextAttemptAt = this.now + this.#delayBefore(batch.attempt)
    return this.#move(batch, 'recording-attempt', { kind: 'record-attempt', batch })
  }

  #move(batch: NaiveBatch, phase: NaiveBatch['phase'], effect: NaiveEffect): NaiveEffect {
    batch.phase = phase
    return effect
  }

  /** What is allowed at `time` in the present state; changes nothing. */
  #pending(time: number): NaiveEffect[] {
    const waiting = this.batches.filter((batch) => batch.phase === 'waiting')
    if (this.#policy.state === 'held' || this.#policy.state === 'unknown') return []
    if (this.#policy.state === 'discarding') {
      const effects: NaiveEffect[] = waiting.map((batch) => ({ kind: 'discard', items: batch.items, batch }))
      const items = this.waiting.map(({ item }) => item)
      return items.length === 0 ? effects : [...effects, { kind: 'discard', items }]
    }
    const turn = this.batches
      .filter((batch) => batch.phase !== 'acking')
      .slice(0, this.#policy.maxConcurrencyPerGroup)
    const ready = waiting.filter((batch) => turn.includes(batch) && batch.nextAttemptAt <= time)
    return [...ready.map((batch) => ({ kind: 'deliver' as const, batch })), ...this.#pendingSeal(time)]
  }

  #pendingSeal(time: number): NaiveEffect[] {
    const delayEnd = this.#lastSealAt + this.#policy.minDelayBetweenFlushMs
    if (this.waiting.length === 0 || this.#blocked() || time < delayEnd) return []
    const items: NamedItem[] = []
    for (const { item, segment } of this.waiting) {
      const fits = items.length === 0 || total(items) + item.bytes <= this.#policy.maxBytes
      if (segment !== this.waiting[0]!.segment || items.length === this.#policy.maxItems || !fits) break
      items.push(item)
    }
    const reason = this.#reason(items.length, time)
    if (!reason) return []
    const triggered = Math.min(
      this.#sizedSince ?? Number.POSITIVE_INFINITY,
      this.#idleAt(),
      this.#maxWaitAt(),
    )
    const dueAt = Math.max(triggered, this.#blockedUntil, delayEnd)
    const segment = this.waiting[0]!.segment
    const fresh = { version: 0, attempt: 0, nextAttemptAt: 0, phase: 'sealing' as const }
    return [{ kind: 'seal', batch: { items, bytes: total(items), segment, reason, dueAt, ...fresh } }]
  }

  #reason(count: number, time: number): FlushReason | undefined {
    if (count === this.#policy.maxItems) return 'items'
    if (total(this.#front()) >= this.#policy.maxBytes) return 'bytes'
    if (this.#frontIsFull()) return 'segment'
    if (this.#idleAt() <= time) return 'idle'
    if (this.#maxWaitAt() <= time) return 'max_wait'
    return undefined
  }

  #carryOut(effect: NaiveEffect): void {
    if (effect.kind === 'deliver') {
      effect.batch.phase = 'delivering'
      if (effect.batch.attempt === 0) effect.batch.attempt = 1
    } else if (effect.kind === 'discard') {
      if (effect.batch) effect.batch.phase = 'discarding'
      else this.waiting = []
    } else if (effect.kind === 'seal') {
      this.waiting = this.waiting.slice(effect.batch.items.length)
      this.batches.push(effect.batch)
      this.#lastSealAt = this.now
      this.#sizedSince = undefined
    }
    this.#noteSizes(this.now)
  }

  #farewell(): NaiveEffect[] {
    return this.#empty() ? [{ kind: 'retire' }] : []
  }

  #blocked(): boolean {
    if (this.#policy.state !== 'active') return true
    if (this.batches.some((batch) => batch.phase === 'sealing')) return true
    return this.batches.filter((b) => b.phase !== 'acking').length >= this.#policy.maxConcurrencyPerGroup
  }

  #noteFullness(): void {
    const open = this.waiting.filter(({ segment }) => segment === this.#openSegment).map(({ item }) => item)
    if (open.length === 0) return
    const { maxGroupItems, maxGroupBytes } = this.#policy
    if (open.length >= maxGroupItems || total(open) >= maxGroupBytes) this.#openIsFull = true
  }

  #noteSizes(at: number): void {
    const front = this.#front()
    const { maxItems, maxBytes } = this.#policy
    const holds =
      front.length > 0 && (front.length >= maxItems || total(front) >= maxBytes || this.#frontIsFull())
    this.#sizedSince = holds ? (this.#sizedSince ?? at) : undefined
  }

  #front(): NamedItem[] {
    return this.waiting.filter(({ segment }) => segment === this.waiting[0]!.segment).map(({ item }) => item)
  }

  #frontIsFull(): boolean {
    return this.waiting[0]!.segment < this.#openSegment || this.#openIsFull
  }

  #idleAt(): number {
    return (
      Math.max(this.#at(this.waiting[0]!.item), this.#at(this.waiting.at(-1)!.item)) +
      this.#policy.idleTimeoutMs
    )
  }

  #maxWaitAt(): number {
    return this.#at(this.waiting[0]!.item) + this.#policy.maxWaitFromFirstMs
  }

  #delayBefore(attempt: number): number {
    const { initialMs, maxMs, multiplier } = this.#policy.backoff
    return attempt < 2 ? 0 : Math.min(Math.round(initialMs * multiplier ** (attempt - 2)), maxMs)
  }

  #empty(): boolean {
    return this.waiting.length === 0 && this.batches.length === 0
  }

  #backToSegment(segment: number): void {
    this.#openSegment = segment
    this.#openIsFull = false
  }
}

function total(items: readonly NamedItem[]): number {
  return items.reduce((sum, item) => sum + item.bytes, 0)
}
