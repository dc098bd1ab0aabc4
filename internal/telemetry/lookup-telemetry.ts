/** How lookups of destination names end, as a counter, and one line when name servers go away and come back. */
import type { Meter } from '@opentelemetry/api'
import type { LookupTelemetry } from '../delivery/ports.ts'
import type { Clock } from '../runtime/clock.ts'
import { counter } from './counter.ts'
import type { Logger } from './logger.ts'

/** So long no lookup may have found the name servers away before they count as back, ms: some names may still work. */
const STEADY_MS = 10_000

export function createLookupTelemetry(
  log: Logger,
  meter: Meter,
  clock: Pick<Clock, 'monotonic'>,
): LookupTelemetry {
  const lookups = counter(meter, 'penstock_dns_lookups', 'Lookups of destination names', 'outcome')
  let awayAt: number | undefined
  return {
    lookup(outcome) {
      lookups.add(1, outcome)
      const now = clock.monotonic()
      if (outcome === 'unreachable') {
        if (awayAt === undefined) log.warn({}, 'no name server answers')
        awayAt = now
      } else if (outcome === 'found' && awayAt !== undefined && now - awayAt >= STEADY_MS) {
        awayAt = undefined
        log.info({}, 'a name server answers again')
      }
    },
  }
}
