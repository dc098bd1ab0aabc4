/**
 * How long a resource waits because the service asked for it (`Retry-After`). Resources of one API key that is limited wait
 * in a row: all at once would use up its rate by being refused.
 */
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'
import { TokenBucket } from '../controller/rate-limit.ts'
import type { Remembered } from './memory.ts'
import type { AdminError, ServiceSigns } from './ports.ts'

const FIRST_MS = 1_000
const LONGEST_MS = 300_000
/** Passes a second of a limited key: each is two requests, and a key has ten a second by default. */
const PASSES = { perSecond: 4, burst: 1 }
/** Keys that are remembered. */
const KEYS = 1_000

/** After a write that met a newer resource, ms: the watch tells of that one soon. It doubles up to the last. */
const CONFLICT_MS = { first: 50, longest: 5_000 }

export interface PatienceOptions {
  readonly clock: Clock
  readonly randomness: Pick<Randomness, 'fraction'>
  readonly service: Pick<ServiceSigns, 'returns'>
}

export class Patience {
  readonly #options: PatienceOptions
  readonly #limited = new Map<string, TokenBucket>()

  constructor(options: PatienceOptions) {
    this.#options = options
  }

  /** Ms until the resource may ask again; of a service that was away and is back, none is owed. */
  leftMs({ deferred }: Remembered): number {
    const { clock, service } = this.#options
    if (deferred === undefined || (deferred.returns ?? service.returns) !== service.returns) return 0
    return deferred.until - clock.monotonic()
  }

  /** Not before the service wants it; ms until then. */
  defer(error: AdminError, retryAfterMs: number, apiKey: string, memory: Remembered): number {
    const { clock, randomness, service } = this.#options
    const askedMs = retryAfterMs * (1 + 0.2 * randomness.fraction())
    if (error.kind !== 'unavailable') {
      const waitMs = Math.max(askedMs, this.#turnMs(apiKey))
      memory.deferred = { until: clock.monotonic() + waitMs }
      return waitMs
    }
    // One that is away may be asked as soon as it said, to see whether it is back; else ever later.
    memory.deferred = { until: clock.monotonic() + askedMs, returns: service.returns }
    return Math.max(askedMs, Math.min(FIRST_MS * 2 ** memory.deferrals++, LONGEST_MS))
  }

  /** Behind those of the key that wait already. */
  #turnMs(apiKey: string): number {
    let bucket = this.#limited.get(apiKey)
    if (bucket === undefined) {
      if (this.#limited.size >= KEYS) this.#limited.clear()
      bucket = new TokenBucket(this.#options.clock, PASSES)
      this.#limited.set(apiKey, bucket)
    }
    return bucket.reserve()
  }
}

/**
 * Ms until the pass is repeated. It is no failure, and takes no share of how many of those are repeated: whoever changes a
 * resource all the time would make the failures of others wait.
 */
export function afterConflict(memory: Remembered): number {
  const before = memory.conflicts ?? 0
  memory.conflicts = before + 1
  return Math.min(CONFLICT_MS.first * 2 ** before, CONFLICT_MS.longest)
}
