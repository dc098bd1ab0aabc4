/** The client of all deliveries of a process: batches, manual retries and tests share its connections and its guard. */
import { DeliveryClient } from '../../internal/delivery/client.ts'
import type { Node } from './foundation.ts'

/** How long running attempts may go on once nobody waits for them any more, ms. */
const CLOSE_MS = 1_000

export function openDeliveries({ lifecycle, clock, config }: Node, version: string): Promise<DeliveryClient> {
  return lifecycle.acquire(
    'deliveries',
    () => new DeliveryClient({ clock, version, allow: config.allowDestinations }),
    (it) => it.close(CLOSE_MS),
  )
}
