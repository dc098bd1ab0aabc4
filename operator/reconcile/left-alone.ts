/** The first rule of all passes: somebody wants the operator to do nothing about a buffer for a while, not even to delete it. */
import { type BufferResource, UNMANAGED_ANNOTATION } from '../resource.ts'
import type { Decision } from './decision.ts'
import type { Observed } from './observed.ts'

export function isLeftAlone({ resource }: Observed): Decision | undefined {
  return isUnmanaged(resource) ? { act: 'report', outcome: { state: 'held' } } : undefined
}

export function isUnmanaged({ metadata }: BufferResource): boolean {
  return metadata.annotations?.[UNMANAGED_ANNOTATION] === 'true'
}
