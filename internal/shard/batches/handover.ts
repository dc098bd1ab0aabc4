/**
 * Attempts that run while their shard changes hands (docs/architecture/protocol.md, "Hand-over"): the release record
 * names them, the last owner sends their results to the next one, and the next one holds their groups until a result
 * is there or its deadline has passed. The messages are not durable: a lost result costs one attempt of the same body
 * under the same key, as a crash would.
 */
import { type BatchName, batchKey } from '../journal/batch-name.ts'
import type { FoldState } from '../journal/state.ts'
import type { ShardOptions } from '../options.ts'
import type { AttemptResult } from '../ports.ts'

/** The last owner tells a result this often until the next one has it, ms. */
const TELL_EVERY_MS = 100
/** No attempt takes longer, whatever the clock of the last owner says, ms. */
const LONGEST_WAIT_MS = 15_000

type Outside = Pick<ShardOptions, 'broker' | 'shard' | 'clock'>
type RemoteAttemptsOptions = Outside & { readonly state: Pick<FoldState, 'released' | 'batches'> }

function resultsSubject(shard: number): string {
  return `shard.${shard}.results`
}

/** Number `attempt` of a batch, the first is 1. */
export interface AttemptName extends BatchName {
  readonly attempt: number
}

export interface Told extends AttemptName {
  readonly result: AttemptResult
}

/** The next owner's side. */
export class RemoteAttempts {
  readonly #options: RemoteAttemptsOptions
  /** Deadlines of what may still run, monotonic ms, by `batchKey`: the clock may be set back meanwhile. */
  readonly #deadlines: ReadonlyMap<string, number>
  /** Results that came, with what confirms them to the last owner. */
  readonly #results = new Map<string, { told: Told; confirm: () => void }>()
  readonly #waiting = new Map<string, { take: (result: AttemptResult) => void; cancel: () => void }>()
  #stopped = false
  /** Somebody here has the result: it is confirmed only then, or whoever lets go before that would keep it from the next owner. */
  readonly #taken = new Set<string>()
  readonly #unsubscribe: () => void

  constructor(options: RemoteAttemptsOptions) {
    this.#options = options
    const { broker, clock, shard, state } = options
    const { released } = state
    const now = clock.now()
    const monotonic = clock.monotonic()
    this.#deadlines = new Map(
      [...released].map(([key, deadline]) => [key, monotonic + Math.min(deadline - now, LONGEST_WAIT_MS)]),
    )
    this.#unsubscribe =
      released.size === 0
        ? () => {}
        : broker.subscribe(resultsSubject(shard), (data, reply) => {
            const told = decode(data)
            if (told !== undefined) this.#learn(told, data, reply)
          })
  }

  /** Whether an attempt of it may still run at the last owner, or has told its result already. */
  has(name: BatchName): boolean {
    return this.#deadlines.has(batchKey(name))
  }

  /** Its result; null once the deadline has passed without one. Never settles after `stop`. */
  result(name: BatchName): Promise<AttemptResult | null> {
    const { clock } = this.#options
    const key = batchKey(name)
    if (this.#stopped) return new Promise(() => {})
    const known = this.#results.get(key)
    if (known) {
      this.#taken.add(key)
      known.confirm()
      return Promise.resolve(known.told.result)
    }
    const leftMs = (this.#deadlines.get(key) ?? 0) - clock.monotonic()
    return new Promise((resolve) => {
      const cancel = clock.after(Math.max(0, leftMs), () => {
        this.#waiting.delete(key)
        resolve(null)
      })
      const take = (result: AttemptResult) => {
        cancel()
        resolve(result)
      }
      this.#waiting.set(key, { take, cancel })
    })
  }

  /** Results that came, and nobody here has asked for yet: whoever lets go before that hands them on. */
  unclaimed(): Told[] {
    return [...this.#results].filter(([key]) => !this.#taken.has(key)).map(([, { told }]) => told)
  }

  /** From now on nothing is taken or confirmed, and nobody is told of a deadline: what comes is for the next owner. */
  stop(): void {
    this.#stopped = true
    this.#unsubscribe()
    for (const { cancel } of this.#waiting.values()) cancel()
    this.#waiting.clear()
  }

  #learn(told: Told, data: Uint8Array, reply: string | undefined): void {
    const { broker, state } = this.#options
    const key = batchKey(told)
    if (this.#stopped || !this.#deadlines.has(key)) return
    const confirm = () => {
      if (reply !== undefined) broker.publish(reply, data)
    }
    // What is told of an earlier attempt than the journal has was known to somebody before.
    if (told.attempt < (state.batches.get(key)?.attempt ?? 0)) {
      confirm()
      return
    }
    const known = this.#results.get(key)
    // Somebody in between gave up waiting for what the one before him has told since.
    if (told.result.unsent && known && !known.told.result.unsent) return
    this.#results.set(key, { told, confirm })
    const waiting = this.#waiting.get(key)
    this.#waiting.delete(key)
    if (waiting) this.#taken.add(key)
    if (this.#taken.has(key)) confirm()
    waiting?.take(told.result)
  }
}

/** The last owner's side. */
export class PassedResults {
  readonly #options: Outside
  readonly #inbox: string
  readonly #untold = new Map<string, Buffer>()
  #awaited: Set<string>
  #unsubscribe: () => void
  #cancelTelling: (() => void) | undefined

  /** `inFlight`: what the release record names. `boot`: makes the reply subject one's own. */
  constructor(options: Outside & Pick<ShardOptions, 'boot'>, inFlight: readonly BatchName[]) {
    const { broker, shard, boot } = options
    this.#options = options
    this.#inbox = `shard.${shard}.told.${boot}`
    this.#awaited = new Set(inFlight.map(batchKey))
    this.#unsubscribe = broker.subscribe(this.#inbox, (data) => {
      const told = decode(data)
      if (told !== undefined) this.#untold.delete(batchKey(told))
    })
  }

  /** Whether every attempt has ended and its result is known to the next owner. */
  get done(): boolean {
    return this.#awaited.size === 0 && this.#untold.size === 0
  }

  tell({ groupId, version, attempt }: AttemptName, result: AttemptResult): void {
    const key = batchKey({ groupId, version })
    if (!this.#awaited.delete(key)) return
    this.#untold.set(key, Buffer.from(JSON.stringify({ groupId, version, attempt, result })))
    if (this.#cancelTelling === undefined) this.#repeat()
  }

  stop(): void {
    this.#cancelTelling?.()
    this.#untold.clear()
    this.#awaited = new Set()
    this.#unsubscribe()
    this.#unsubscribe = () => {}
  }

  #repeat(): void {
    this.#cancelTelling = undefined
    if (this.#untold.size === 0) return
    const { broker, shard, clock } = this.#options
    for (const data of this.#untold.values()) broker.publish(resultsSubject(shard), data, this.#inbox)
    this.#cancelTelling = clock.after(TELL_EVERY_MS, () => this.#repeat())
  }
}

/** Another version's message, or a foreign one, is no result. */
function decode(data: Uint8Array): Told | undefined {
  try {
    const told = JSON.parse(Buffer.from(data).toString()) as Told
    // Until every node says which attempt: it is taken for the one that is waited for, as before.
    const { groupId, version, attempt = Number.MAX_SAFE_INTEGER, result } = told
    const named = typeof groupId === 'string' && [version, attempt].every(Number.isSafeInteger)
    const judged = typeof result?.delivered === 'boolean' && typeof result.retryable === 'boolean'
    return named && judged ? { groupId, version, attempt, result } : undefined
  } catch {
    return undefined
  }
}
