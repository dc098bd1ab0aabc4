/** Result of reading untrusted input. `error` names the offending field and is meant for the caller. */
export type Parsed<T> = { ok: true; value: T } | { ok: false; error: string }

export function accept<T>(value: T): Parsed<T> {
  return { ok: true, value }
}

export function refuse(error: string): { ok: false; error: string } {
  return { ok: false, error }
}
