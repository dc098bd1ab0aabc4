/**
 * Questions to the name servers, by c-ares: on sockets of the event loop, never in the thread pool, where four names
 * whose servers are silent hold up everything. Each question has a resolver for itself while it is under way, so that
 * giving it up closes its sockets and touches no other.
 */
import { Resolver } from 'node:dns/promises'
import type { Clock } from '../../runtime/clock.ts'
import { LookupError } from './failure.ts'
import type { Candidate } from './resolv-conf.ts'

/** What the servers know of one name; at least one address. */
export interface Found {
  readonly addresses: readonly string[]
  /** How long all of it may be kept, s. */
  readonly ttl: number
}

interface AddressRecord {
  address: string
  ttl: number
}

/** Before a server is asked again, or the next one is, ms; twice as long in each further round. */
const TRY_MS = 1_000
const TRIES = 3
/** How long the second family may take once the first has answered, ms: some servers drop what they do not know. */
const SECOND_FAMILY_MS = 500
/** For the answer to a question that every server answers, ms. */
const PROBE_MS = 1_000

/** Codes that come from a server, whatever it says. */
const ANSWERS = ['ENOTFOUND', 'ENODATA', 'ESERVFAIL', 'EREFUSED', 'ENOTIMP', 'EFORMERR', 'EBADRESP']
/** Which code stands for both families: the first of these, otherwise any but the last. */
const CODES_IN_ORDER = ['ENOTFOUND', 'ETIMEOUT', 'ECONNREFUSED']
const WEAKEST_CODE = 'ENODATA'

export class NameServers {
  readonly #clock: Clock
  readonly #addresses: () => readonly string[]
  readonly #idle: Resolver[] = []
  readonly #busy = new Set<Resolver>()
  #configured = ''
  #answeredAt = Number.NEGATIVE_INFINITY
  #probe: Promise<void> | undefined

  /** `addresses` of the servers with their ports, as of now; each question asks for them. */
  constructor(clock: Clock, addresses: () => readonly string[]) {
    this.#clock = clock
    this.#addresses = addresses
  }

  /** Both families of a name, within `ms`. Throws LookupError. */
  ask({ name, asItStands }: Candidate, ms: number): Promise<Found> {
    return this.#withResolver(ms, async (resolver, giveUpAfter) => {
      const families = [resolver.resolve4(name, { ttl: true }), resolver.resolve6(name, { ttl: true })]
      for (const family of families)
        family.then(
          () => giveUpAfter(SECOND_FAMILY_MS),
          () => {},
        )
      const results = await Promise.allSettled(families)
      // The server of a cluster knows by itself what its search list makes: that tells nothing of all other names.
      if (asItStands) this.#noteAnswers(results)
      return foundIn(results)
    })
  }

  /**
   * Whether any server answered anything about a name as it stands since `since`, monotonic ms; asks when nothing is
   * known.
   */
  async answeredSince(since: number): Promise<boolean> {
    if (this.#answeredAt < since) await this.#probed()
    return this.#answeredAt >= since
  }

  /** Gives up all that is under way. */
  close(): void {
    for (const resolver of this.#busy) resolver.cancel()
  }

  /** The servers of the root: no recursive resolver has to ask others for long. */
  #probed(): Promise<void> {
    this.#probe ??= this.#withResolver(PROBE_MS, async (resolver) => {
      this.#noteAnswers(await Promise.allSettled([resolver.resolveNs('.')]))
    }).finally(() => {
      this.#probe = undefined
    })
    return this.#probe
  }

  #noteAnswers(results: readonly PromiseSettledResult<unknown>[]): void {
    const answered = results.some(
      (result) => result.status === 'fulfilled' || ANSWERS.includes(codeOf(result)),
    )
    if (answered) this.#answeredAt = this.#clock.monotonic()
  }

  async #withResolver<T>(
    ms: number,
    use: (resolver: Resolver, giveUpAfter: (ms: number) => void) => Promise<T>,
  ): Promise<T> {
    const servers = this.#addresses()
    const resolver = this.#take(servers)
    const timers: (() => void)[] = []
    const giveUpAfter = (delay: number) => timers.push(this.#clock.after(delay, () => resolver.cancel()))
    giveUpAfter(ms)
    this.#busy.add(resolver)
    try {
      return await use(resolver, giveUpAfter)
    } finally {
      for (const cancel of timers) cancel()
      this.#busy.delete(resolver)
      if (servers.join() === this.#configured) this.#idle.push(resolver)
    }
  }

  /** A used one knows which servers were silent. */
  #take(servers: readonly string[]): Resolver {
    if (servers.join() !== this.#configured) {
      this.#configured = servers.join()
      this.#idle.length = 0
    }
    const known = this.#idle.pop()
    if (known) return known
    const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES })
    resolver.setServers(servers)
    return resolver
  }
}

/** Throws LookupError when no family has an address. */
function foundIn(results: readonly PromiseSettledResult<AddressRecord[]>[]): Found {
  const records = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  if (records.length > 0) {
    return {
      addresses: records.map(({ address }) => address),
      ttl: Math.min(...records.map(({ ttl }) => ttl)),
    }
  }
  const codes = results.map(codeOf)
  const code = CODES_IN_ORDER.find((each) => codes.includes(each))
  throw new LookupError(code ?? codes.find((each) => each !== WEAKEST_CODE) ?? WEAKEST_CODE)
}

/** Of what was given up, that the time was over; `ENODATA` of an empty answer. */
function codeOf(result: PromiseSettledResult<unknown>): string {
  if (result.status === 'fulfilled') return WEAKEST_CODE
  const { code } = result.reason
  return code === 'ECANCELLED' ? 'ETIMEOUT' : String(code)
}
