/**
 * Addresses of destination names (docs/architecture/protocol.md, "Lookups"): from the hosts file, from memory, or from
 * the name servers.
 *
 * Customers choose the names, and the servers of a name may be silent. Therefore each customer has a bounded number of
 * lookups under way, and customers take turns for all of them. A name is asked for once at a time, whoever wants it.
 */
import type { Clock } from '../../runtime/clock.ts'
import { Generations } from '../../runtime/generations.ts'
import type { LookupOutcome, LookupTelemetry } from '../ports.ts'
import { type QueueLimits, type Turn, TurnQueue } from '../queue.ts'
import { inOrder, preferredFamily, type ResolvedAddress } from './addresses.ts'
import { LookupError, LookupWithheldError } from './failure.ts'
import { type Found, NameServers } from './name-servers.ts'
import { candidatesOf } from './resolv-conf.ts'
import { search } from './search.ts'
import { type SystemFilePaths, SystemFiles } from './system-files.ts'

export interface LookupsOptions {
  clock: Clock
  telemetry: LookupTelemetry
  /** With their ports, such as `10.0.0.10` or `[fd00::10]:5353`. Default: those of resolv.conf. */
  servers?: readonly string[] | undefined
  files?: SystemFilePaths
  /** Default: 512 at once, 64 of a customer, 10,000 waiting. */
  limits?: Partial<QueueLimits>
}

/** Of a process. */
export const LOOKUP_LIMITS: QueueLimits & { perCustomer: number } = {
  atOnce: 512,
  perCustomer: 64,
  waiting: 10_000,
  waitingBytes: Number.POSITIVE_INFINITY,
}
/** Wait for a turn, ms. With the lookup and the probe behind it, it stays within the deadline of an attempt. */
export const LOOKUP_WAIT_MS = 1_000
/** One lookup, its search list included, ms. */
export const LOOKUP_MS = 5_000
/** Addresses are kept as long as their records say, but no longer: a destination may move. Ms. */
const MOST_KEPT_MS = 5_000
/** No longer than the first retry waits by default: it asks again. Ms. */
const FAILURE_KEPT_MS = 1_000
const NAMES_KEPT = 10_000
/** Lookups of a customer have one order. */
const FLOW = ''

interface Kept {
  readonly until: number
  readonly result: Promise<ResolvedAddress[]>
}

export class Lookups {
  readonly #clock: Clock
  readonly #firstFamily = preferredFamily()
  readonly #telemetry: LookupTelemetry
  readonly #files: SystemFiles
  readonly #servers: NameServers
  readonly #queue: TurnQueue
  readonly #underWay = new Map<string, Promise<ResolvedAddress[]>>()
  readonly #kept = new Generations<string, Kept>(NAMES_KEPT)

  constructor({ clock, telemetry, servers, files, limits }: LookupsOptions) {
    this.#clock = clock
    this.#telemetry = telemetry
    this.#files = new SystemFiles(files)
    this.#servers = new NameServers(clock, () => servers ?? this.#files.resolvConf.servers)
    this.#queue = new TurnQueue({ ...LOOKUP_LIMITS, ...limits })
  }

  /**
   * The addresses of a name, best first, at least one. `customerId`: whose share of the lookups is used. Rejects with
   * LookupError, or with LookupWithheldError when nothing was learnt of the name.
   */
  resolve(hostname: string, customerId: string): Promise<ResolvedAddress[]> {
    const name = hostname.toLowerCase()
    const addresses = this.#files.addressesOf(name)
    if (addresses?.length === 0) return Promise.reject(new LookupError('ENOTFOUND'))
    if (addresses) return Promise.resolve(inOrder(addresses, this.#firstFamily))
    return this.#known(name) ?? this.#inTurn(name, customerId)
  }

  /** Gives up what is under way and refuses what waits. */
  close(): void {
    this.#queue.empty('the service is stopping')
    this.#servers.close()
  }

  #known(name: string): Promise<ResolvedAddress[]> | undefined {
    const underWay = this.#underWay.get(name)
    if (underWay) return underWay
    const kept = this.#kept.get(name)
    return kept && kept.until > this.#clock.monotonic() ? kept.result : undefined
  }

  #inTurn(name: string, customerId: string): Promise<ResolvedAddress[]> {
    const { promise, resolve, reject } = Promise.withResolvers<ResolvedAddress[]>()
    let stopWaiting = () => {}
    const turn: Turn = {
      customerId,
      flow: FLOW,
      bytes: 0,
      start: () => {
        stopWaiting()
        resolve(this.#start(name, customerId))
      },
      refuse: (reason) => {
        stopWaiting()
        this.#telemetry.lookup('refused')
        reject(new LookupWithheldError(reason))
      },
    }
    stopWaiting = this.#clock.after(LOOKUP_WAIT_MS, () => {
      if (this.#queue.withdraw(turn)) turn.refuse('too many lookups of host names are under way')
    })
    if (!this.#queue.enter(turn)) turn.refuse('too many lookups of host names wait')
    return promise
  }

  /** While the turn was waited for, somebody else may have asked. */
  #start(name: string, customerId: string): Promise<ResolvedAddress[]> {
    const known = this.#known(name)
    if (known) {
      this.#queue.leave({ customerId, flow: FLOW })
      return known
    }
    const lookup = this.#look(name).finally(() => {
      this.#underWay.delete(name)
      this.#queue.leave({ customerId, flow: FLOW })
    })
    this.#underWay.set(name, lookup)
    return lookup
  }

  async #look(name: string): Promise<ResolvedAddress[]> {
    try {
      const { addresses, ttl } = await this.#search(name)
      const resolved = inOrder(addresses, this.#firstFamily)
      this.#keep(name, Promise.resolve(resolved), Math.min(MOST_KEPT_MS, ttl * 1_000))
      this.#telemetry.lookup('found')
      return resolved
    } catch (error) {
      const failure = Promise.reject(error)
      failure.catch(() => {})
      this.#keep(name, failure, FAILURE_KEPT_MS)
      this.#telemetry.lookup(outcomeOf(error))
      throw error
    }
  }

  async #search(name: string): Promise<Found> {
    const began = this.#clock.monotonic()
    const candidates = candidatesOf(name, this.#files.resolvConf)
    try {
      return await search(candidates, LOOKUP_MS, this.#clock, (each, ms) => this.#servers.ask(each, ms))
    } catch (error) {
      if (!(error instanceof LookupError) || !error.silent) throw error
      if (!error.refused && (await this.#servers.answeredSince(began))) throw error
      throw new LookupWithheldError('no name server answers', { cause: error })
    }
  }

  #keep(name: string, result: Promise<ResolvedAddress[]>, ms: number): void {
    this.#kept.set(name, { result, until: this.#clock.monotonic() + ms })
  }
}

function outcomeOf(error: unknown): LookupOutcome {
  if (error instanceof LookupWithheldError) return 'unreachable'
  return error instanceof LookupError && error.silent ? 'unanswered' : 'failed'
}
