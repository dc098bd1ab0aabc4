/** What deliveries report. */

/**
 * How a lookup ended. `failed`: the servers say that there is no address, or that they cannot tell. `unanswered`: those
 * of the name are silent. `unreachable`: ours are. `refused`: it was not begun, for too many are under way.
 */
export type LookupOutcome = 'found' | 'failed' | 'unanswered' | 'unreachable' | 'refused'

export interface LookupTelemetry {
  /** Once a lookup, not for names that are in memory or in the hosts file. */
  lookup(outcome: LookupOutcome): void
}
