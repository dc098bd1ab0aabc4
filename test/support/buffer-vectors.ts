/** What a buffer may be (api/vectors/buffers.json), as bodies of `POST /v1/admin/buffers`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { number } from './json-number.ts'

type Json = Record<string, unknown>

export interface BufferVector {
  /** No two have the same one. */
  readonly name: string
  /** Values by dotted path; `writtenOut` says what stands for a value that JSON would write at length. */
  readonly set?: Readonly<Record<string, unknown>>
  readonly unset?: readonly string[]
  readonly verdict: 'taken' | 'refused'
  /** Of the schema; there when it is refused. */
  readonly field?: string
  /** The answer's text, where it does not begin with the field. */
  readonly says?: string
  /** Why the Kubernetes definition says otherwise; a name of `reasons`. */
  readonly because?: string
}

export interface BufferVectors {
  readonly base: Json
  /** `resource`: what becomes of the resource: refused by the definition, or the reason that its status tells. */
  readonly reasons: Readonly<Record<string, { readonly why: string; readonly resource: string }>>
  readonly documents: readonly BufferVector[]
}

const file = join(import.meta.dirname, '..', '..', 'api', 'vectors', 'buffers.json')

export const bufferVectors = JSON.parse(readFileSync(file, 'utf8')) as BufferVectors

/** The body as `JSON.stringify` is to write it: some numbers keep a spelling. */
export function bodyOf({ set = {}, unset = [] }: BufferVector, customerId: string): Json {
  const body = structuredClone(bufferVectors.base)
  for (const [path, value] of Object.entries(set)) put(body, path.split('.'), writtenOut(value, customerId))
  for (const path of unset) put(body, path.split('.'), undefined)
  return body
}

/** Documents by the field that they are about, in the order of the file. */
export function vectorsByField(): Map<string, BufferVector[]> {
  return Map.groupBy(bufferVectors.documents, subjectOf)
}

/** The field at fault, else the last one that is set. */
export function subjectOf({ field, set = {} }: BufferVector): string {
  return field ?? Object.keys(set).at(-1) ?? 'base'
}

function put(root: Json, path: readonly string[], value: unknown): void {
  let node = root
  for (const name of path.slice(0, -1)) {
    node[name] ??= {}
    node = node[name] as Json
  }
  const last = path.at(-1)!
  if (value === undefined) delete node[last]
  else node[last] = value
}

function writtenOut(value: unknown, customerId: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const { $text, $number, $members, $customer } = value as Json
  if ($text !== undefined) return ($text as (string | [string, number])[]).map(piece).join('')
  if ($number !== undefined) return number(String($number))
  if ($members !== undefined) return members($members as Members)
  if ($customer !== undefined) return customerId
  const entries = Object.entries(value).map(([name, member]) => [name, writtenOut(member, customerId)])
  return Object.fromEntries(entries)
}

function piece(part: string | [string, number]): string {
  return typeof part === 'string' ? part : part[0].repeat(part[1])
}

interface Members {
  readonly names: string
  readonly count: number
  readonly value: string
}

function members({ names, count, value }: Members): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`${names}${n}`, value]))
}
