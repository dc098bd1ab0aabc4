/**
 * Refused webhooks in the log. A sender whose requests are refused may send thousands a second, and its owner still wants
 * to know why: the first of a buffer and a reason is told at once, and what follows is counted and told once a minute.
 */
import type { IngestAnswer } from '../ingest/answer.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from './logger.ts'

const EVERY_MS = 60_000
/** Pairs of a buffer and a reason that are counted apart; of all others the reasons alone. */
const MOST = 1_000

type Refusal = Pick<IngestAnswer, 'status' | 'reason' | 'detail'>

interface Counted {
  readonly bufferId: string | undefined
  readonly refusal: Refusal
  /** Since the last line. */
  count: number
}

export class RefusedWebhooks {
  readonly #log: Logger
  readonly #clock: Clock
  readonly #counted = new Map<string, Counted>()
  #cancel: (() => void) | undefined

  constructor(log: Logger, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** `bufferId`: of a buffer that exists; undefined: the request named none. */
  add(bufferId: string | undefined, refusal: Refusal): void {
    const key = keyOf(bufferId, refusal)
    const known = this.#counted.get(key)
    if (known) known.count++
    else if (bufferId !== undefined && this.#counted.size >= MOST) this.add(undefined, refusal)
    else this.#begin(key, { bufferId, refusal, count: 0 })
  }

  /** Tells what was counted and not told yet. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    for (const counted of this.#counted.values()) this.#tell(counted)
    this.#counted.clear()
  }

  #begin(key: string, counted: Counted): void {
    this.#counted.set(key, counted)
    counted.count = 1
    this.#tell(counted)
    this.#cancel ??= this.#clock.after(EVERY_MS, () => this.#tellAll())
  }

  /** One that nobody was refused for in a minute is forgotten: its next is told at once again. */
  #tellAll(): void {
    this.#cancel = undefined
    for (const [key, counted] of this.#counted) {
      if (counted.count === 0) this.#counted.delete(key)
      else this.#tell(counted)
    }
    if (this.#counted.size > 0) this.#cancel = this.#clock.after(EVERY_MS, () => this.#tellAll())
  }

  #tell(counted: Counted): void {
    const { bufferId, count } = counted
    const { status, reason, detail } = counted.refusal
    if (count === 0) return
    counted.count = 0
    this.#log.info({ bufferId, status, reason, count, ...detail }, 'webhooks refused')
  }
}

/** No reason holds a line feed. */
function keyOf(bufferId: string | undefined, { reason }: Refusal): string {
  return `${reason}\n${bufferId ?? ''}`
}
