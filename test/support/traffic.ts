/**
 * What the tests of a run have asked of the service and been answered, and what they declare to have shown.
 * At the end of a whole run it is held against the contract (`test/contract`).
 */

export interface Exchange {
  readonly operationId: string
  readonly status: number
  /** `code` of a refusal. */
  readonly code?: string
  /** `error` of a refusal. */
  readonly error?: string
}

const exchanges = new Map<string, Exchange>()
const declared = new Set<string>()
const passed: string[] = []

/** Takes an answer down; equal ones once. */
export function record(operationId: string, answer: { status: number; text: string }): void {
  const { status, text } = answer
  const refusal = status >= 400 ? refusalOf(text) : {}
  const exchange = { operationId, status, ...refusal }
  exchanges.set(JSON.stringify(exchange), exchange)
}

/** Declares that the running test shows this row of the contract; call it after its assertions. */
export function covers(row: string): void {
  declared.add(row)
}

export function traffic(): readonly Exchange[] {
  return [...exchanges.values()]
}

export function isDeclared(row: string): boolean {
  return declared.has(row)
}

/** Takes down that a test has passed. */
export function pass(fullTitle: string): void {
  passed.push(fullTitle)
}

export function passedTests(): readonly string[] {
  return passed
}

/** All of it, for the process that judges the run. */
export interface Shown {
  readonly exchanges: readonly Exchange[]
  readonly declared: readonly string[]
  readonly passed: readonly string[]
}

export function shown(): Shown {
  return { exchanges: traffic(), declared: [...declared], passed }
}

/** Takes over what another process of the same run has shown. */
export function addShown(other: Shown): void {
  for (const exchange of other.exchanges) exchanges.set(JSON.stringify(exchange), exchange)
  for (const row of other.declared) declared.add(row)
  passed.push(...other.passed)
}

function refusalOf(text: string): { code?: string; error?: string } {
  if (!text.startsWith('{')) return {}
  const { error, code } = JSON.parse(text) as { error?: string; code?: string }
  return { ...(error !== undefined && { error }), ...(code !== undefined && { code }) }
}
