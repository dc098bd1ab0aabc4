/** Query parameters (design, section 9): given once or not at all, integers within bounds. Errors name the parameter. */
import { accept, type Parsed, refuse } from './parsed.ts'

/** What URL query parsers give: a repeated parameter is an array. */
export type QueryValue = string | readonly string[] | undefined

export interface CountRange {
  /** When the parameter is absent. */
  fallback: number
  /** The least accepted value is 1. */
  max: number
}

/** `limit` of a list: 1 to 500. */
export const listLimit = (fallback: number): CountRange => ({ fallback, max: 500 })
/** `days` of the analytics: 1 to 90. */
export const analyticsDays: CountRange = { fallback: 7, max: 90 }

/** A parameter that may be given once; undefined when absent. */
export function parseParameter(name: string, value: QueryValue): Parsed<string | undefined> {
  if (value === undefined || typeof value === 'string') return accept(value)
  return refuse(`${name} must be given once`)
}

/** An integer from 1 to `range.max` in plain decimal digits: no sign, exponent, fraction or leading zero. */
export function parseCount(name: string, value: QueryValue, range: CountRange): Parsed<number> {
  const parameter = parseParameter(name, value)
  if (!parameter.ok) return parameter
  if (parameter.value === undefined) return accept(range.fallback)
  const count = /^[1-9][0-9]{0,8}$/.test(parameter.value) ? Number(parameter.value) : 0
  return count >= 1 && count <= range.max
    ? accept(count)
    : refuse(`${name} must be an integer from 1 to ${range.max}`)
}
