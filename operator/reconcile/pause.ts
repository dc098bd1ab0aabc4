/** A buffer that somebody wants disabled for a while, without a change of its spec: by an annotation of its resource. */
import { type BufferResource, type BufferStatus, PAUSE_ANNOTATION } from '../resource.ts'

/** Reason of the condition `Paused`. Also the memory of the pause: it says that the buffer has to go on afterwards. */
export const PAUSED_BY_ANNOTATION = 'PausedByAnnotation'

export function isPaused({ metadata }: BufferResource): boolean {
  return metadata.annotations?.[PAUSE_ANNOTATION] === 'true'
}

/** The status says that the operator disabled the buffer for the annotation. */
export function isToldPaused(status: BufferStatus | undefined): boolean {
  return status?.conditions?.some(({ reason }) => reason === PAUSED_BY_ANNOTATION) ?? false
}
