/** Values of Secrets that a resource names, as text. What is wrong with one is told without any part of it. */
import type { BufferResource, SecretKeyRef, SecretVersion } from '../resource.ts'
import type { SecretResource } from './ports.ts'

/** Why a value cannot be used: `reason` for programs, `error` for people. */
export interface SecretProblem {
  readonly ok: false
  readonly reason: 'SecretNotFound' | 'SecretInvalid' | 'InvalidCredentials'
  readonly error: string
}

export interface SecretText {
  readonly ok: true
  readonly value: string
  /** A line end stood behind it, which editors and `echo` leave there. */
  readonly hadLineEnd: boolean
}

export type SecretValue = SecretText | SecretProblem

/** A Secret of the resource's own namespace. */
export type FindSecret = (name: string) => SecretResource | undefined

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const API_KEY = /^svk_[0-9a-f]{48}$/

/** The keys that the resource names of each Secret, in the order of the Secrets' names. */
export function secretKeys({ spec }: BufferResource): ReadonlyMap<string, ReadonlySet<string>> {
  const { delivery, sourceVerification, credentialsRef } = spec
  const refs = [
    credentialsRef,
    delivery.signing?.secretKeyRef,
    sourceVerification?.secretKeyRef,
    sourceVerification?.previousSecretKeyRef,
    ...(delivery.headersFrom ?? []).map(({ secretKeyRef }) => secretKeyRef),
  ].filter((ref) => ref !== undefined)
  const names = [...new Set(refs.map(({ name }) => name))].sort()
  return new Map(
    names.map((name) => [name, new Set(refs.filter((ref) => ref.name === name).map(({ key }) => key))]),
  )
}

/** Every Secret that the resource names, each once, in the order of their names. */
export function secretNames(resource: BufferResource): string[] {
  return [...secretKeys(resource).keys()]
}

/** Of those that are there. */
export function secretVersions(resource: BufferResource, find: FindSecret): SecretVersion[] {
  return secretNames(resource).flatMap((name) => {
    const resourceVersion = find(name)?.metadata.resourceVersion
    return resourceVersion === undefined ? [] : [{ name, resourceVersion }]
  })
}

/** The value without one line end at its end. */
export function secretValue(ref: SecretKeyRef, find: FindSecret): SecretValue {
  const secret = find(ref.name)
  if (secret === undefined) return problem('SecretNotFound', `Secret ${ref.name} does not exist`)
  const data = secret.data ?? {}
  if (!Object.hasOwn(data, ref.key))
    return problem('SecretNotFound', `Secret ${ref.name} has no key ${ref.key}`)
  const bytes = Buffer.from(data[ref.key]!, 'base64')
  const text = textOf(bytes)
  if (text === undefined)
    return problem('SecretInvalid', `${ref.key} of Secret ${ref.name} is no text in UTF-8`)
  const value = text.replace(/\r?\n$/, '')
  if (value === '') return problem('SecretInvalid', `${ref.key} of Secret ${ref.name} is empty`)
  return { ok: true, value, hadLineEnd: value !== text }
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** That of a header, which can hold no line end. */
export function headerValue(ref: SecretKeyRef, find: FindSecret): SecretValue {
  const value = secretValue(ref, find)
  if (!value.ok || !/[\r\n]/.test(value.value)) return value
  return problem('SecretInvalid', `${ref.key} of Secret ${ref.name} has a newline, which no header can have`)
}

/** The API key; blanks and line ends around it are not part of it. What is none is not sent to anybody. */
export function apiKey(ref: SecretKeyRef, find: FindSecret): SecretValue {
  const value = secretValue(ref, find)
  if (!value.ok) return value
  const key = value.value.trim()
  if (API_KEY.test(key)) return { ...value, value: key }
  return problem(
    'InvalidCredentials',
    `${ref.key} of Secret ${ref.name} is no API key (svk_ and 48 hexadecimal characters)`,
  )
}

function problem(reason: SecretProblem['reason'], error: string): SecretProblem {
  return { ok: false, reason, error }
}
