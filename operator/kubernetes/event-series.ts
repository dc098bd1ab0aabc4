/**
 * Which Events are worth a request. The same text about the same resource is one Event with a count, and a resource that
 * changes its mind all the time is heard a few times, then rarely. Pure.
 */
import type { Clock } from '../../internal/runtime/clock.ts'
import { TokenBucket } from '../controller/rate-limit.ts'

/** A text that was not repeated for so long starts a new Event, ms (client-go: 6 minutes). */
const SERIES_ENDS_MS = 6 * 60_000
/** The count of a series is written at most so often, ms. */
const COUNT_EVERY_MS = 60_000
/** Events of one resource: so many at once, then one in five minutes, as client-go's spam filter. */
const SPAM = { perSecond: 1 / 300, burst: 25 }
/** Resources and series remembered; the longest silent is forgotten first. */
const REMEMBERED = 4_096

interface Series {
  readonly name: string
  count: number
  lastMs: number
  writtenMs: number
}

export type EventWrite =
  | { readonly write: 'first'; readonly name: string }
  | { readonly write: 'count'; readonly name: string; readonly count: number }
  | { readonly write: 'nothing' }

export class EventSeries {
  readonly #clock: Clock
  readonly #series = new Map<string, Series>()
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `uid`: of the resource. `text`: all that makes two Events the same. `newName`: of an Event that is not there yet. */
  judge(uid: string, text: string, newName: () => string): EventWrite {
    const id = idOf(uid, text)
    const now = this.#clock.monotonic()
    const series = this.#series.get(id)
    if (series && now - series.lastMs < SERIES_ENDS_MS) return this.#repeat(series, now)
    if (!this.#bucket(uid).tryTake()) return { write: 'nothing' }
    const name = newName()
    remember(this.#series, id, { name, count: 1, lastMs: now, writtenMs: now })
    return { write: 'first', name }
  }

  /** It could not be written: the next one of the kind is a first one again. */
  forget(uid: string, text: string): void {
    this.#series.delete(idOf(uid, text))
  }

  #repeat(series: Series, now: number): EventWrite {
    series.count++
    series.lastMs = now
    // The second is told at once: it makes a series of what looked like a single event.
    if (series.count > 2 && now - series.writtenMs < COUNT_EVERY_MS) return { write: 'nothing' }
    series.writtenMs = now
    return { write: 'count', name: series.name, count: series.count }
  }

  #bucket(uid: string): TokenBucket {
    const bucket = this.#buckets.get(uid) ?? new TokenBucket(this.#clock, SPAM)
    remember(this.#buckets, uid, bucket)
    return bucket
  }
}

function idOf(uid: string, text: string): string {
  return `${uid} ${text}`
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > REMEMBERED) map.delete(map.keys().next().value!)
}
