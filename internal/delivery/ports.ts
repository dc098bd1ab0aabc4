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

/**
 * Why nothing was sent, for want of ours. `room`: too much of the customer waits or runs. `socket`: this process or
 * machine has no file descriptor or memory for another connection.
 */
export type Want = 'room' | 'socket'

export interface DeliveryTelemetry {
  /** Once for each attempt that was not begun, and again each time that it is tried. */
  withheld(want: Want): void
}
