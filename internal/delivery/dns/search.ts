import type { Clock } from '../../runtime/clock.ts'
import { LookupError } from './failure.ts'
import type { Found } from './name-servers.ts'
import type { Candidate } from './resolv-conf.ts'

/**
 * Asks for one candidate after the other until one has an address, all within `ms`. Throws the LookupError of the name
 * as it stands, whose silence ends the search: that it has no answer does not make another name right.
 *
 * A completed name gets its part of the time, and the first that is silent ends the search list, as it does for the
 * system's resolver.
 */
export async function search(
  candidates: readonly Candidate[],
  ms: number,
  clock: Clock,
  ask: (candidate: Candidate, ms: number) => Promise<Found>,
): Promise<Found> {
  const end = clock.monotonic() + ms
  let failure: LookupError | undefined
  let silent = false
  for (const [at, candidate] of candidates.entries()) {
    const { asItStands } = candidate
    if (silent && !asItStands) continue
    const left = end - clock.monotonic()
    try {
      return await ask(candidate, asItStands ? left : left / (candidates.length - at))
    } catch (error) {
      if (!(error instanceof LookupError)) throw error
      if (asItStands) failure = error
      if (asItStands && error.silent) break
      silent ||= error.silent
    }
  }
  throw failure ?? new Error('a name as it stands is always a candidate')
}
