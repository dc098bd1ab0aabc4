/** How the text of one environment variable is read. Errors say what is wanted; the caller adds the name. */
import { accept, type Parsed, refuse } from '../../internal/domain/parsed.ts'

export interface Setting<T> {
  /** Exact name of the environment variable. */
  name: string
  /** What it takes, to be read behind "must be". */
  accepts: string
  parse(text: string): Parsed<T>
  /** Shown as set or unset only. */
  secret?: boolean
}

export function text(name: string): Setting<string> {
  return { name, accepts: 'any text', parse: accept }
}

/** Whole number in the range, both ends included. */
export function integer(name: string, least: number, most: number): Setting<number> {
  const accepts = `an integer from ${least} to ${most}`
  const parse = (text: string) => {
    const value = Number(text)
    const good = /^\d+$/.test(text) && value >= least && value <= most
    return good ? accept(value) : refuse(`must be ${accepts}`)
  }
  return { name, accepts, parse }
}

export function flag(name: string): Setting<boolean> {
  const accepts = 'true or false'
  const parse = (text: string) =>
    text === 'true' || text === 'false' ? accept(text === 'true') : refuse(`must be ${accepts}`)
  return { name, accepts, parse }
}

export function oneOf<const T extends string>(name: string, values: readonly T[]): Setting<T> {
  const accepts = `one of ${values.join(', ')}`
  const parse = (text: string) => {
    const value = values.find((candidate) => candidate === text)
    return value === undefined ? refuse(`must be ${accepts}`) : accept(value)
  }
  return { name, accepts, parse }
}

/** A URL of one of the schemes, given without colon. */
export function url(name: string, schemes: readonly string[]): Setting<string> {
  const accepts = `a URL with ${schemes.join(' or ')}`
  const parse = (text: string) => (hasScheme(text, schemes) ? accept(text) : refuse(`must be ${accepts}`))
  return { name, accepts, parse }
}

/** Comma-separated, each part read by `part`; at least one. `accepts`: of the whole. */
export function list<T>(name: string, accepts: string, part: (text: string) => Parsed<T>): Setting<T[]> {
  const parse = (text: string): Parsed<T[]> => {
    const values: T[] = []
    for (const piece of text.split(',').map((each) => each.trim())) {
      const read = part(piece)
      if (!read.ok) return read
      values.push(read.value)
    }
    return accept(values)
  }
  return { name, accepts, parse }
}

export function hasScheme(text: string, schemes: readonly string[]): boolean {
  const parsed = URL.parse(text)
  return parsed !== null && parsed.host !== '' && schemes.includes(parsed.protocol.slice(0, -1))
}
