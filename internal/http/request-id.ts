/** The id under which a request stands in answers and logs (docs/reference/api.md, "Conventions"). */
import { randomUUID } from 'node:crypto'

export const REQUEST_ID_HEADER = 'X-Request-Id'

/** A caller's own id is kept when it cannot forge a log line. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** `given`: the header as it came. Without a usable one: a new UUID. */
export function requestIdOf(given: string | string[] | undefined): string {
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID()
}
