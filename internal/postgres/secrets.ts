/**
 * Secrets at rest (docs/architecture/protocol.md, "Secrets"): AES-256-GCM, each value under its own random nonce,
 * bound to the row and the field it stands in, so that a ciphertext copied elsewhere does not open. Stored as
 * `enc1:<key id>:<base64url of nonce, tag and ciphertext>`.
 *
 * Rotation: the first key encrypts, all of them decrypt; a value moves to the first key when it is written, and all of them
 * by `rekey.ts`.
 */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { accept, type Parsed, refuse } from '../domain/parsed.ts'
import { Generations } from '../runtime/generations.ts'

export interface SecretKey {
  readonly id: string
  /** 32 bytes. */
  readonly key: Uint8Array
}

export interface SecretBox {
  /** Of all keys, the encrypting one first. */
  readonly keyIds: readonly string[]
  /** `place`: the row's identity and the path of the field. */
  seal(plain: string, place: readonly string[]): string
  /** Throws SecretError when the key is not known, or the text was not sealed for this place. */
  open(sealed: string, place: readonly string[]): string
}

/** A stored secret that cannot be opened; the message names the place and never the value. */
export class SecretError extends Error {
  override readonly name = 'SecretError'
}

const VERSION = 'enc1'
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Values that a box has opened and need not open again: nearly half of what a list of buffers costs otherwise. */
const KEPT = 8_192
/** Id of a key given without one. */
const UNNAMED = 'default'

/**
 * `PENSTOCK_SECRET_KEY`: base64 of 32 bytes (its id is `default`), or comma-separated `keyid:base64` pairs, the
 * encrypting one first. The error never shows the value.
 */
export function parseSecretKeys(text: string): Parsed<SecretKey[]> {
  const keys: SecretKey[] = []
  for (const part of text.split(',').map((each) => each.trim())) {
    const colon = part.indexOf(':')
    const id = colon === -1 ? UNNAMED : part.slice(0, colon)
    const key = Buffer.from(part.slice(colon + 1), 'base64')
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) return refuse('a key id must be 1 to 64 of A-Za-z0-9_-')
    if (key.length !== 32) return refuse(`key ${id} must be base64 of 32 bytes`)
    if (keys.some((other) => other.id === id)) return refuse(`key id ${id} is given twice`)
    keys.push({ id, key })
  }
  return accept(keys)
}

/** `keys`: at least one; the first encrypts. */
export function createSecretBox(keys: readonly SecretKey[]): SecretBox {
  const [first] = keys
  if (first === undefined) throw new Error('a secret box needs at least one key')
  const byId = new Map(keys.map((each) => [each.id, each.key]))
  const opened = new Generations<string, Opened>(KEPT)
  return {
    keyIds: keys.map(({ id }) => id),
    seal: (plain, place) => `${VERSION}:${first.id}:${encrypt(first.key, plain, place)}`,
    open(sealed, place) {
      const known = opened.get(sealed)
      if (known !== undefined && isSamePlace(known.place, place)) return known.plain
      const plain = openWith(byId, sealed, place)
      opened.set(sealed, { place: [...place], plain })
      return plain
    },
  }
}

interface Opened {
  readonly place: readonly string[]
  readonly plain: string
}

function isSamePlace(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, index) => name === other[index])
}

function openWith(keys: ReadonlyMap<string, Uint8Array>, sealed: string, place: readonly string[]): string {
  const [version, id, text] = sealed.split(':')
  const key = keys.get(id ?? '')
  if (version !== VERSION || text === undefined) throw unreadable(place, 'it is not encrypted')
  if (key === undefined) throw unreadable(place, `its key ${id} is not configured`)
  return decrypt(key, Buffer.from(text, 'base64url'), place)
}

function encrypt(key: Uint8Array, plain: string, place: readonly string[]): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(bindingOf(place))
  const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')
}

function decrypt(key: Uint8Array, bytes: Buffer, place: readonly string[]): string {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw unreadable(place, 'it is cut short')
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  // The length is fixed here: otherwise a shortened tag would be accepted.
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(bindingOf(place)).setAuthTag(tag)
  try {
    const body = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES))
    return Buffer.concat([body, decipher.final()]).toString('utf8')
  } catch (cause) {
    throw unreadable(place, 'it was sealed with another key or for another place', cause)
  }
}

/** A list in JSON: no two places, whatever their names hold, share one text. */
function bindingOf(place: readonly string[]): Buffer {
  return Buffer.from(JSON.stringify(place))
}

function unreadable(place: readonly string[], why: string, cause?: unknown): SecretError {
  return new SecretError(`the secret at ${place.join('.')} cannot be read: ${why}`, { cause })
}
