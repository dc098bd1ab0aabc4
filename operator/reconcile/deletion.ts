/**
 * What a pass for a deleted resource does next, as the rules of `decide.ts`: its buffer is deleted first, by the key of its
 * Secret or one that is remembered. A namespace that is deleted must not wait for ever: once the Secret is gone and no
 * remembered key is usable, the buffer is left behind. While the Secret is there, its key can still become usable.
 */
import { FINALIZER } from '../resource.ts'
import type { Decision, Rule } from './decision.ts'
import { isLeftAlone } from './left-alone.ts'
import type { Observed } from './observed.ts'

/** How soon what only another resource or a clock can mend is looked at again; it costs no request. */
export const LOCAL_RETRY_MS = 30_000
/** How long a deleted resource whose Secret is gone waits for it, ms since this process first found it so. */
export const ORPHAN_AFTER_MS = 60_000
/** How long while the service gives the remembered key no answer, ms. */
export const ORPHAN_UNANSWERED_MS = 300_000
/** How soon a key that the service refused is tried again, ms: it may get a higher role there. */
const REFUSED_RETRY_MS = 60_000

export const DELETED: readonly Rule[] = [
  notHeld,
  isLeftAlone,
  keepsBuffer,
  neverMade,
  anothers,
  removed,
  remove,
  missing,
  stranded,
]

export function isHeld(finalizers: readonly string[] = []): boolean {
  return finalizers.includes(FINALIZER)
}

function notHeld({ resource }: Observed): Decision | undefined {
  const { finalizers = [] } = resource.metadata
  if (isHeld(finalizers)) return undefined
  const isTold = resource.status?.bufferId === undefined
  return finalizers.length === 0 || isTold
    ? { act: 'rest' }
    : { act: 'report', outcome: { state: 'released' } }
}

function keepsBuffer({ resource }: Observed): Decision | undefined {
  return resource.spec.deletionPolicy === 'Orphan' ? { act: 'release' } : undefined
}

function neverMade({ resource, claimed }: Observed): Decision | undefined {
  return resource.status?.bufferId === undefined || claimed ? { act: 'release' } : undefined
}

/** It was never shown the buffer as its own: with a key of one account it would delete another resource's. */
function anothers({ resource, rival, bufferId }: Observed): Decision | undefined {
  if (resource.status?.ingestPath !== undefined || rival === undefined) return undefined
  if (rival.isOwner) return { act: 'release' }
  return { act: 'report', outcome: conflictWith(bufferId, rival.name, false), againMs: LOCAL_RETRY_MS }
}

/** `isOwner`: whether the resource `name` has the buffer, or only comes first. */
export function conflictWith(bufferId: string, name: string, isOwner: boolean) {
  const message = isOwner
    ? `buffer ${bufferId} already belongs to the resource ${name}`
    : `the resource ${name} tries to get the buffer ${bufferId}, and comes first`
  return { state: 'stalled' as const, reason: 'Conflict', message }
}

function removed({ removed }: Observed): Decision | undefined {
  return removed && { act: 'release' }
}

/** By each key that may reach it: the Secret may be gone before the resource, its key revoked, or another account's. */
function remove({ key, lastKeys, tried = [] }: Observed): Decision | undefined {
  const keys = key.ok ? [key.value, ...lastKeys] : lastKeys
  const next = keys.find((each) => !tried.includes(each))
  return next === undefined ? undefined : { act: 'remove', key: next }
}

function missing({ missing }: Observed): Decision | undefined {
  return missing && { act: 'release', missing }
}

function stranded(observed: Observed): Decision {
  const { reason, message } = keyProblem(observed)
  const outcome = { state: 'stalled' as const, reason, message }
  if (!observed.mayStrand) return { act: 'report', outcome, againMs: REFUSED_RETRY_MS }
  const leftMs = ORPHAN_AFTER_MS - observed.strandedMs
  if (leftMs <= 0) return { act: 'release', orphaned: message }
  return { act: 'report', outcome, againMs: leftMs }
}

function keyProblem({ key, refused, outOfReach }: Observed): { reason: string; message: string } {
  if (refused !== undefined) {
    const reason = refused.kind === 'forbidden' ? 'Forbidden' : 'InvalidCredentials'
    return { reason, message: refused.message }
  }
  if (outOfReach !== undefined) return { reason: 'InvalidCredentials', message: outOfReach }
  if (key.ok) throw new Error('a key was not tried')
  return { reason: key.reason, message: key.error }
}
