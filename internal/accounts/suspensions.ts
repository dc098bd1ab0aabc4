/**
 * Suspension of customers (docs/decisions/0040-suspended-customers.md), by whoever runs the installation. Ingest and
 * changes are refused, deliveries are held, and nothing is lost.
 */

import { required, ServiceError } from '../domain/errors.ts'
import { parseIdentifier } from '../domain/identifiers.ts'
import { untilNone } from '../runtime/rounds.ts'
import type { Suspension, SuspensionStore } from './ports.ts'

export interface Suspensions {
  /**
   * Suspends or resumes. What is so already stays so, and a run that was cut off is completed. Answers how many buffers
   * followed. Throws 400 for a bad id, 404 for an unknown customer.
   */
  set(customerId: string, suspended: boolean): Promise<Suspension & { buffers: number }>
}

export function createSuspensions(store: SuspensionStore): Suspensions {
  return {
    async set(id, suspended) {
      const customerId = required(parseIdentifier('customerId', id))
      const suspension = await store.set(customerId, suspended)
      if (suspension === undefined) throw new ServiceError('customerNotFound')
      const buffers = await untilNone(
        () => store.markBuffers(customerId),
        () => false,
      )
      return { ...suspension, buffers }
    },
  }
}
