// Made by npm run crd from operator/export/names.ts. Change that one.
/**
 * Names of resources for identifiers of buffers, which may have capitals, `_` and more that Kubernetes takes in no name.
 * An identifier that is a name stays as it is. Any other gets a hash behind it, so its name depends on nothing else, and
 * no two have the same one.
 */
import { createHash } from 'node:crypto'

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
/** Hexadecimal digits of the hash: more only where a name is taken. */
const HASH_LENGTHS = [8, 16, 64]

/** A name of a Secret or of a Buffer: 1 to 253 characters (RFC 1123, subdomain). */
export function isObjectName(text: string): boolean {
  return text.length <= 253 && SUBDOMAIN.test(text)
}

/** A name of a namespace: 1 to 63 characters (RFC 1123, label). */
export function isNamespaceName(text: string): boolean {
  return text.length <= 63 && !text.includes('.') && SUBDOMAIN.test(text)
}

/** The name of each, by its identifier. */
export function resourceNames(bufferIds: readonly string[]): Map<string, string> {
  const names = new Map(bufferIds.filter(isObjectName).map((id) => [id, id]))
  const taken = new Set(names.values())
  for (const id of bufferIds.filter((each) => !isObjectName(each))) {
    const name = HASH_LENGTHS.map((length) => derived(id, length)).find((each) => !taken.has(each))!
    names.set(id, name)
    taken.add(name)
  }
  return names
}

function derived(bufferId: string, length: number): string {
  const labels = bufferId
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .split('.')
    .map((label) => label.replace(/^-|-$/g, ''))
    .filter((label) => label !== '')
  const hash = createHash('sha256').update(bufferId).digest('hex').slice(0, length)
  return `${labels.join('.') || 'buffer'}-${hash}`
}
