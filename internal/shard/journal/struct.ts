/** Codecs of values: one declaration says how a value is written, and how it is read. Codecs of parts make that of the whole. */
import { type ByteReader, type ByteWriter, CorruptBytesError } from './bytes.ts'

export interface Codec<T> {
  readonly write: (out: ByteWriter, value: T) => void
  /** Throws CorruptBytesError. */
  readonly read: (input: ByteReader) => T
}

export type Members<T> = { readonly [Name in keyof T]-?: Codec<T[Name]> }

/** 0 to 2^53 - 1. */
export const integer: Codec<number> = {
  write: (out, value) => out.integer(value),
  read: (input) => input.integer(),
}

export const text: Codec<string> = {
  write: (out, value) => out.text(value),
  read: (input) => input.text(),
}

/** 16 bytes as 22 characters of base64url. */
export const token: Codec<string> = {
  write: (out, value) => out.token(value),
  read: (input) => input.token(),
}

export const uuid: Codec<string> = {
  write: (out, value) => out.uuid(value),
  read: (input) => input.uuid(),
}

/** Read as a copy, which does not hold the bytes around it in memory. */
export const block: Codec<Uint8Array> = {
  write: (out, value) => out.block(value),
  read: (input) => new Uint8Array(input.block()),
}

/** One of at most 256, by its place among them. */
export function oneOf<const T>(values: readonly T[]): Codec<T> {
  return {
    write: (out, value) => out.byte(values.indexOf(value)),
    read(input) {
      const value = values[input.byte()]
      if (value === undefined) throw new CorruptBytesError(`none of ${values.join(', ')}`)
      return value
    },
  }
}

/** Nothing is written of it. */
export function constant<const T>(value: T): Codec<T> {
  return { write: () => {}, read: () => value }
}

export function optional<T>(some: Codec<T>): Codec<T | null> {
  return {
    write(out, value) {
      out.byte(value === null ? 0 : 1)
      if (value !== null) some.write(out, value)
    },
    read: (input) => (input.byte() === 1 ? some.read(input) : null),
  }
}

export function list<T>(entry: Codec<T>): Codec<readonly T[]> {
  return {
    write(out, values) {
      out.integer(values.length)
      for (const value of values) entry.write(out, value)
    },
    read(input) {
      const values: T[] = []
      for (let left = input.integer(); left > 0; left--) values.push(entry.read(input))
      return values
    },
  }
}

/** Its members in the order of their declaration, without their names. */
export function struct<T extends object>(members: Members<T>): Codec<T> {
  const entries = Object.entries(members) as [keyof T, Codec<T[keyof T]>][]
  return {
    write(out, value) {
      for (const [name, member] of entries) member.write(out, value[name])
    },
    read(input) {
      const value = {} as T
      for (const [name, member] of entries) value[name] = member.read(input)
      return value
    },
  }
}
