/**
 * What is kept of answers of the API server: the resources, without the metadata that nobody here reads. Others write it, and
 * it may be larger than the rest: managed fields alone may be a megabyte.
 */
import { GROUP } from '../resource.ts'
import type { Keeps } from './json-members.ts'

/** Of a resource of which only the metadata is asked for, and of a list. */
const IDENTITY = new Set(['name', 'namespace', 'uid', 'resourceVersion', 'continue'])
/** Of any other. */
const METADATA = new Set([
  ...IDENTITY,
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'finalizers',
  'annotations',
])

/** Which resource it is, and its version. */
export const ofMetadata: Keeps = (parent, name) => parent !== 'metadata' || IDENTITY.has(name)

/** All of it but the metadata of others. */
export const ofResource: Keeps = (parent, name) => {
  if (parent === 'metadata') return METADATA.has(name)
  return parent !== 'annotations' || name.startsWith(`${GROUP}/`)
}

/** The values of these keys. */
export function ofSecret(keys: ReadonlySet<string>): Keeps {
  return (parent, name) => (parent === 'data' ? keys.has(name) : ofMetadata(parent, name))
}
