/** The first rule of all passes: somebody wants the operator to do nothing about a buffer for a while, not even to delete it. */
import { PAUSE_ANNOTATION } from '../resource.ts'
import type { Decision } from './decision.ts'
import type { Observed } from './observed.ts'

export function isLeftAlone({ resource }: Observed): Decision | undefined {
  const { annotations } = resource.metadata
  return annotations?.[PAUSE_ANNOTATION] === 'true'
    ? { act: 'report', outcome: { state: 'held' } }
    : undefined
}
