/** What is kept of a resource. */
import type { Named } from '../controller/ports.ts'
import { GROUP } from '../resource.ts'

/** The resource itself, without the metadata that nobody here reads: it may be larger than the rest, and others write it. */
export function reduced<T extends Named>(object: T): T {
  const metadata = object.metadata as Record<string, unknown> | undefined
  if (metadata === undefined) return object
  delete metadata.managedFields
  delete metadata.labels
  const annotations = Object.entries((metadata.annotations ?? {}) as Record<string, string>)
  const own = annotations.filter(([name]) => name.startsWith(`${GROUP}/`))
  if (own.length > 0) metadata.annotations = Object.fromEntries(own)
  else delete metadata.annotations
  return object
}
