/** Attempts of which nothing was sent, for want of something of ours: a counter, and a line when sockets are scarce. */
import type { Meter } from '@opentelemetry/api'
import type { DeliveryTelemetry } from '../delivery/ports.ts'
import type { Clock } from '../runtime/clock.ts'
import { counter } from './counter.ts'
import type { Logger } from './logger.ts'

/** Between two lines about sockets, ms: there is one for each attempt otherwise. */
const QUIET_MS = 60_000

export function createDeliveryTelemetry(
  log: Logger,
  meter: Meter,
  clock: Pick<Clock, 'monotonic'>,
): DeliveryTelemetry {
  const withheld = counter(
    meter,
    'penstock_withheld_attempts',
    'Attempts that were withdrawn for want of something of the process',
    'want',
  )
  let toldAt = Number.NEGATIVE_INFINITY
  return {
    withheld(want) {
      withheld.add(1, want)
      const now = clock.monotonic()
      if (want !== 'socket' || now - toldAt < QUIET_MS) return
      toldAt = now
      log.warn({}, 'no socket is left for deliveries')
    },
  }
}
