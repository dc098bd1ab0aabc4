/**
 * The rows of the reference's tables (docs/reference), as data: what a caller is promised, and how a run of the
 * tests shows it. A whole run fails for every row that none of its tests showed (`whole-run.ts`).
 */
export interface Row {
  /** Table of the reference. */
  readonly table: string
  /** The row, in a few words. */
  readonly row: string
  readonly shownBy: Evidence
}

export type Evidence =
  /** An answer that the service gave to a test, every one of them held against the OpenAPI document. */
  | { readonly operationId: string; readonly status: number; readonly code?: string; readonly error?: string }
  /** A test that declared it after its assertions (`covers`). */
  | { readonly declared: string }
  /** Tests that passed, by their full titles. */
  | { readonly tests: readonly string[] }
  /** It cannot happen: why. */
  | { readonly never: string }

/** What a run leaves behind. */
export interface Shown {
  readonly exchanges: readonly {
    readonly operationId: string
    readonly status: number
    readonly code?: string
    readonly error?: string
  }[]
  readonly declared: (name: string) => boolean
  /** Full titles of the tests that passed. */
  readonly passed: readonly string[]
}

/** The rows that nothing shows, in words. */
export function missing(rows: readonly Row[], shown: Shown): string[] {
  return rows.filter((row) => !isShown(row.shownBy, shown)).map(({ table, row }) => `${table}: ${row}`)
}

function isShown(evidence: Evidence, shown: Shown): boolean {
  if ('never' in evidence) return true
  if ('declared' in evidence) return shown.declared(evidence.declared)
  if ('tests' in evidence) {
    return evidence.tests.every((title) => shown.passed.some((passed) => passed.includes(title)))
  }
  const { operationId, status, code, error } = evidence
  return shown.exchanges.some(
    (each) =>
      each.operationId === operationId &&
      each.status === status &&
      (code === undefined || each.code === code) &&
      (error === undefined || (each.error ?? '').includes(error)),
  )
}
