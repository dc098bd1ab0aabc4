/** What the ingress of one pack does until it knows which of its explicit items are duplicates. */
import type { PackItem } from '../../../internal/domain/pack.ts'
import { askSubject, decodeAnswer, decodeVerdict, encodeAsk } from '../../../internal/domain/verdict.ts'
import type { World } from './world.ts'

/** It waits so long for a verdict, and for each answer, ms. */
const PATIENCE_MS = 1_000
/** Of those that ask whatever they heard. */
const CURIOUS = 0.3

export interface Inquired {
  /** Of the pack: positions may be used again after a power cut. */
  readonly number: number
  readonly seq: number
  readonly items: readonly PackItem[]
  /** Where it hears verdicts. */
  readonly reply: string
  /** Whether the pack names `reply`. */
  readonly awaited: boolean
}

export class Inquiry {
  readonly #world: World
  readonly #pack: Inquired
  readonly #explicit: { index: number; itemId: string }[]
  readonly #onDuplicate: (itemId: string) => void
  #known = false
  #lost = false

  constructor(world: World, pack: Inquired, onDuplicate: (itemId: string) => void) {
    this.#world = world
    this.#pack = pack
    this.#onDuplicate = onDuplicate
    this.#explicit = pack.items.flatMap(({ explicit, itemId }, index) =>
      explicit ? [{ index, itemId }] : [],
    )
    world.subscribe(pack.reply, (data) => this.#heardVerdict(data))
    world.subscribe(this.#answers, (data) => this.#heardAnswer(data))
    const { events } = world
    if (events.random() < CURIOUS) events.after(events.between(0, 1_500), () => this.#ask())
    if (pack.awaited) events.after(PATIENCE_MS, () => this.#askUntilKnown())
  }

  /** Nobody waits any more. */
  get over(): boolean {
    return this.#known || !this.#pack.awaited
  }

  /** Its pack is gone from the inbox. */
  lost(from: number): void {
    if (this.#pack.seq >= from) this.#known = this.#lost = true
  }

  get #answers(): string {
    return `answers.${this.#pack.number}`
  }

  #heardVerdict(data: Uint8Array): void {
    const verdict = decodeVerdict(data)
    if (!verdict) return
    this.#known = true
    for (const { index } of verdict.duplicates) this.#onDuplicate(this.#pack.items[index]!.itemId)
  }

  #heardAnswer(data: Uint8Array): void {
    const answer = decodeAnswer(data)
    if (answer?.kind !== 'position') return
    this.#known ||= answer.fates.every(({ kind }) => kind !== 'unknown')
    answer.fates.forEach(({ kind }, at) => {
      if (kind === 'duplicate') this.#onDuplicate(this.#explicit[at]!.itemId)
    })
  }

  #ask(): void {
    if (this.#lost) return
    const { number, seq } = this.#pack
    const items = this.#explicit
    this.#world.verdicts.asked(
      number,
      seq,
      items.map(({ index }) => index),
    )
    this.#world.send(askSubject(0), encodeAsk({ kind: 'position', id: number, seq, items }), this.#answers)
  }

  #askUntilKnown(): void {
    if (this.#known) return
    this.#ask()
    this.#world.events.after(PATIENCE_MS, () => this.#askUntilKnown())
  }
}
