/**
 * What is presented again and again is kept once a minute, with a count: a sender that was forgotten when its key was
 * revoked may ask a thousand times a second. The first time is kept at once.
 */
import type { Clock } from '../runtime/clock.ts'

export interface RepetitionsOptions<T> {
  readonly clock: Clock
  /** `count`: how often, at least 1; `last` is how it was the last time. false: it is not kept, and not counted. */
  readonly keep: (last: T, count: number) => boolean
  /** There are too many names to count: this one is not kept. */
  readonly onOverflow: (event: T) => void
}

export interface Repetitions<T> {
  /** `name`: what is the same about repetitions. */
  happened(name: string, event: T): void
  /** Keeps what was counted and is not kept yet. */
  stop(): void
}

const EVERY_MS = 60_000
/** Names within a minute. */
const MAX_NAMES = 1_000

export function createRepetitions<T>({ clock, keep, onOverflow }: RepetitionsOptions<T>): Repetitions<T> {
  const recent = new Map<string, { last: T; count: number; cancel: () => void }>()

  function close(name: string): void {
    const known = recent.get(name)
    recent.delete(name)
    if (known === undefined || known.count === 0) return
    if (keep(known.last, known.count)) open(name, known.last)
  }

  function open(name: string, last: T): void {
    recent.set(name, { last, count: 0, cancel: clock.after(EVERY_MS, () => close(name)) })
  }

  return {
    happened(name, event) {
      const known = recent.get(name)
      if (known !== undefined) {
        known.last = event
        known.count++
      } else if (recent.size >= MAX_NAMES) onOverflow(event)
      // What is not kept takes no name from others.
      else if (keep(event, 1)) open(name, event)
    },
    stop() {
      for (const { last, count, cancel } of recent.values()) {
        cancel()
        if (count > 0) keep(last, count)
      }
      recent.clear()
    },
  }
}
