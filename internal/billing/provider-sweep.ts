/**
 * Asks the provider for what was missed: at the start of a node, and hourly (docs/architecture/billing.md, "The
 * sweep"). Notifications get lost, and a node may die between the provider's yes and our row.
 */

import type { Clock } from '../runtime/clock.ts'
import type { PaymentProvider, ProviderSweeps } from './ports.ts'
import type { ProviderEvents } from './provider-events.ts'

/** An hour, ms. */
export const SWEEP_EVERY_MS = 3_600_000
/** What changed shortly before the last sweep is read again: the provider may list it late. Ms. */
const OVERLAP_MS = 600_000

export interface SweepResult {
  /** Objects that were read. */
  read: number
  /** Of these, what cannot be applied yet: the next sweep begins where this one did. */
  later: number
}

export interface ProviderSweep {
  /**
   * Sweeps when the last sweep is `afterMs` old (default: an hour; 0: in any case). undefined: it is not due, or another node sweeps.
   * Rejects when the provider or Postgres is away; the next sweep begins where this one did.
   */
  run(afterMs?: number): Promise<SweepResult | undefined>
  /** Age of the last sweep, ms; undefined: there was none. As of the last `run`, whose answers it keeps. */
  lagMs(): number | undefined
}

export interface ProviderSweepOptions {
  provider: PaymentProvider
  sweeps: ProviderSweeps
  events: ProviderEvents
  clock: Clock
}

export function createProviderSweep({
  provider,
  sweeps,
  events,
  clock,
}: ProviderSweepOptions): ProviderSweep {
  let last: number | undefined

  async function sweep(since: number | undefined): Promise<SweepResult> {
    const seen = new Set<string>()
    const result = { read: 0, later: 0 }
    for await (const reference of provider.changes(since === undefined ? 0 : since - OVERLAP_MS)) {
      const name = `${reference.kind} ${reference.id}`
      if (seen.has(name)) continue
      seen.add(name)
      result.read++
      if ((await events.receive(reference)) === 'later') result.later++
    }
    return result
  }

  return {
    async run(afterMs = SWEEP_EVERY_MS) {
      last = await sweeps.sweptUntil(provider.name)
      if (last !== undefined && clock.now() - last < afterMs) return undefined
      let result: SweepResult | undefined
      await sweeps.once(provider.name, async (since) => {
        result = await sweep(since)
        return result.later === 0
      })
      last = await sweeps.sweptUntil(provider.name)
      return result
    },
    lagMs: () => (last === undefined ? undefined : Math.max(0, clock.now() - last)),
  }
}
