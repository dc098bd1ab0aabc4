/**
 * The client of all deliveries of a process: batches, manual retries and tests share its connections, its lookups and
 * its guard.
 */
import type { Meter } from '@opentelemetry/api'
import { attemptPlaces } from '../../internal/delivery/attempt-places.ts'
import { DeliveryClient } from '../../internal/delivery/client.ts'
import { Lookups } from '../../internal/delivery/dns/lookups.ts'
import { openFileLimit } from '../../internal/runtime/open-files.ts'
import { createDeliveryTelemetry } from '../../internal/telemetry/delivery-telemetry.ts'
import { createLookupTelemetry } from '../../internal/telemetry/lookup-telemetry.ts'
import type { Node } from './foundation.ts'

/** How long running attempts may go on once nobody waits for them any more, ms. */
const CLOSE_MS = 1_000

export async function openDeliveries(
  { lifecycle, clock, config, log }: Node,
  version: string,
  meter: Meter,
): Promise<DeliveryClient> {
  const lookups = await lifecycle.acquire(
    'lookups',
    () =>
      new Lookups({ clock, telemetry: createLookupTelemetry(log, meter, clock), servers: config.dnsServers }),
    (it) => it.close(),
  )
  return lifecycle.acquire(
    'deliveries',
    () =>
      new DeliveryClient({
        clock,
        telemetry: createDeliveryTelemetry(log, meter, clock),
        version,
        allow: config.allowDestinations,
        ports: config.destinationPorts,
        places: attemptPlaces(openFileLimit()),
        resolve: (hostname, customerId) => lookups.resolve(hostname, customerId),
      }),
    (it) => it.close(CLOSE_MS),
  )
}
