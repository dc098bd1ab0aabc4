/** How the text of one environment variable is read. Errors say what is wanted; the caller adds the name. */
import { accept, type Parsed, refuse } from '../domain/parsed.ts'

export interface Setting<T> {
  /** Exact name of the environment variable. */
  name: string
  parse(text: string): Parsed<T>
  /** Shown as set or unset only. */
  secret?: boolean
}

export function text(name: string): Setting<string> {
  return { name, parse: accept }
}

/** Whole number in the range, both ends included. */
export function integer(name: string, least: number, most: number): Setting<number> {
  const parse = (text: string) => {
    const value = Number(text)
    const good = /^\d+$/.test(text) && value >= least && value <= most
    return good ? accept(value) : refuse(`must be an integer from ${least} to ${most}`)
  }
  return { name, parse }
}

export function flag(name: string): Setting<boolean> {
  const parse = (text: string) =>
    text === 'true' || text === 'false' ? accept(text === 'true') : refuse('must be true or false')
  return { name, parse }
}

export function oneOf<const T extends string>(name: string, values: readonly T[]): Setting<T> {
  const parse = (text: string) => {
    const value = values.find((candidate) => candidate === text)
    return value === undefined ? refuse(`must be one of ${values.join(', ')}`) : accept(value)
  }
  return { name, parse }
}

/** A URL of one of the schemes, given without colon. */
export function url(name: string, schemes: readonly string[]): Setting<string> {
  const parse = (text: string) =>
    hasScheme(text, schemes) ? accept(text) : refuse(`must be a URL with ${schemes.join(' or ')}`)
  return { name, parse }
}

/** Comma-separated, each part read by `part`; at least one. */
export function list<T>(name: string, part: (text: string) => Parsed<T>): Setting<T[]> {
  const parse = (text: string): Parsed<T[]> => {
    const values: T[] = []
    for (const piece of text.split(',').map((each) => each.trim())) {
      const read = part(piece)
      if (!read.ok) return read
      values.push(read.value)
    }
    return accept(values)
  }
  return { name, parse }
}

export function hasScheme(text: string, schemes: readonly string[]): boolean {
  const parsed = URL.parse(text)
  return parsed !== null && parsed.host !== '' && schemes.includes(parsed.protocol.slice(0, -1))
}
