/**
 * Asks the provider for what was missed: at the start of a node, and hourly (docs/architecture/billing.md, "The
 * sweep"). Notifications get lost, and a node may die between the provider's yes and our row.
 */

import type { Clock } from '../runtime/clock.ts'
import type { PaymentProvider, ProviderSweeps } from './ports.ts'
import type { Outcome, ProviderEvents } from './provider-events.ts'
import type { ObjectReference } from './readings.ts'

/** An hour, ms. */
export const SWEEP_EVERY_MS = 3_600_000
/** What changed shortly before the last sweep is read again: the provider may list it late. Ms. */
const OVERLAP_MS = 600_000
/** A sweep that left something is done again after this, ms: it reads all from the same point. */
const AGAIN_MS = 600_000
/** So many objects one after the other that fail end a sweep. */
const FAILURES = 3

export interface SweepResult {
  /** Objects that were read. */
  read: number
  /** Of these, what cannot be applied yet: the next sweep begins where this one did. */
  later: number
}

export interface ProviderSweep {
  /**
   * Sweeps when the last sweep is `afterMs` old (default: an hour; 0: in any case). undefined: it is not due, or another
   * node sweeps. Rejects when the provider or Postgres is away; the next sweep begins where this one did. `stopped`: it ends
   * before the next object.
   */
  run(afterMs?: number, stopped?: () => boolean): Promise<SweepResult | undefined>
  /** Age of the last complete sweep, ms; before the first one, since this node began. */
  lagMs(): number
}

export interface ProviderSweepOptions {
  provider: PaymentProvider
  sweeps: ProviderSweeps
  events: ProviderEvents
  clock: Clock
  /** Told of an object that failed, when the sweep goes on behind it. */
  onFailed: (error: unknown) => void
}

export function createProviderSweep({
  provider,
  sweeps,
  events,
  clock,
  onFailed,
}: ProviderSweepOptions): ProviderSweep {
  /** When the last complete sweep began, else this node. By the monotonic clock, as `notBefore`. */
  let last = clock.monotonic()
  let notBefore = 0

  async function sweep(since: number | undefined, stopped: () => boolean): Promise<SweepResult> {
    const seen = new Set<string>()
    const result = { read: 0, later: 0 }
    for await (const reference of provider.changes(since === undefined ? 0 : since - OVERLAP_MS)) {
      const name = `${reference.kind} ${reference.id}`
      if (seen.has(name)) continue
      seen.add(name)
      if (stopped()) return { ...result, later: result.later + 1 }
      result.read++
      if ((await received(reference)) === 'later') result.later++
    }
    return result
  }

  /** One object that fails does not hold up the others. When all do, the provider or Postgres is away. */
  let failures = 0
  async function received(reference: ObjectReference): Promise<Outcome> {
    try {
      const outcome = await events.receive(reference)
      failures = 0
      return outcome
    } catch (error) {
      if (++failures >= FAILURES) throw error
      onFailed(error)
      return 'later'
    }
  }

  async function measure(): Promise<void> {
    const age = await sweeps.age(provider.name)
    if (age !== undefined) last = clock.monotonic() - age
  }

  return {
    async run(afterMs = SWEEP_EVERY_MS, stopped = () => false) {
      if (afterMs > 0 && clock.monotonic() < notBefore) return undefined
      await measure()
      let result: SweepResult | undefined
      await sweeps.once(provider.name, afterMs, async (since) => {
        failures = 0
        result = await sweep(since, stopped)
        notBefore = result.later === 0 ? 0 : clock.monotonic() + AGAIN_MS
        return result.later === 0
      })
      await measure()
      return result
    },
    lagMs: () => clock.monotonic() - last,
  }
}
