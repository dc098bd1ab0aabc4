import type { PlaceLimits } from './places.ts'

/**
 * Attempts at once of a process, over all origins. One of a silent destination takes a socket, 20 KB and its body, for 10
 * s. A customer has 200 a second even if each of them takes all of its time, and four that abuse it leave some to others.
 */
export const ATTEMPT_PLACES: PlaceLimits = { atOnce: 8_192, perCustomer: 2_048 }

/**
 * Of all bodies of a process that run or wait, over all origins: half of what its payload cache has. With that cache and the
 * heap they fit into the 1 GiB that the chart gives an actor.
 */
export const BODY_BYTES = 128 * 1_048_576

const OF_PROCESS = ATTEMPT_PLACES.atOnce / ATTEMPT_PLACES.perCustomer
/** Attempts and idle connections each take a quarter of the files at most: the rest is for all other work. */
export const FILES_PER_ATTEMPT = 4

/** No more attempts than `openFiles` has room for; both numbers at least 1. */
export function attemptPlaces(openFiles: number): PlaceLimits {
  const atOnce = Math.max(1, Math.min(ATTEMPT_PLACES.atOnce, Math.floor(openFiles / FILES_PER_ATTEMPT)))
  return { atOnce, perCustomer: Math.ceil(atOnce / OF_PROCESS) }
}
