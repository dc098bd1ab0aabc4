/**
 * What a pass for a deleted resource does next, as the rules of `decide.ts`: its buffer is deleted first, by the key of its
 * Secret or one that is remembered. Its namespace must not wait for ever: without a usable key the buffer is left behind.
 */
import { FINALIZER } from '../resource.ts'
import type { Decision, Rule } from './decision.ts'
import type { Observed } from './observed.ts'

/**
 * How long a deleted resource waits for a usable API key before its buffer is left behind, ms since this process first
 * found none.
 */
export const ORPHAN_AFTER_MS = 60_000
/** How long while the Secret is gone and the service gives the remembered key no answer, ms. */
export const ORPHAN_UNANSWERED_MS = 300_000

export const DELETED: readonly Rule[] = [notHeld, keepsBuffer, neverMade, removed, remove, missing, stranded]

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
  const leftMs = ORPHAN_AFTER_MS - observed.strandedMs
  if (leftMs <= 0) return { act: 'release', orphaned: message }
  return { act: 'report', outcome: { state: 'stalled', reason, message }, againMs: leftMs }
}

function keyProblem({ key, refused }: Observed): { reason: string; message: string } {
  if (refused === undefined) {
    if (key.ok) throw new Error('a key was not tried')
    return { reason: key.reason, message: key.error }
  }
  const reason = refused.kind === 'forbidden' ? 'Forbidden' : 'InvalidCredentials'
  return { reason, message: refused.message }
}
