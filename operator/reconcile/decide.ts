/**
 * What a pass does next, as an ordered chain of predicates: the first that answers wins. Pure: time is a part of what was
 * observed. A pass asks again after it looked at the service.
 *
 *   Secret, spec ──▶ report        no finalizer ──▶ finalize ──▶ look ─┬─ absent ──▶ claim ──▶ create ─▶ refused: disown
 *                                                                      ├─ not ours ─▶ report, or claim (Adopt)
 *   deleted ──▶ remove ──▶ release                                     └─ ours ────▶ change, or report
 */
import type { Buffer } from '../../internal/domain/model.ts'
import { RECONCILE_ANNOTATION, RESUME_ANNOTATION } from '../resource.ts'
import type { ChangeReason, Decision, Rule } from './decision.ts'
import { conflictWith, DELETED, isHeld, LOCAL_RETRY_MS } from './deletion.ts'
import type { DesiredBuffer } from './desired-buffer.ts'
import { changedFields, differenceOf } from './difference.ts'
import { isLeftAlone } from './left-alone.ts'
import { type Observed, RESUME_MAX_LENGTH } from './observed.ts'
import { isPaused, isToldPaused } from './pause.ts'
import { cutText } from './texts.ts'

const LIVING: readonly Rule[] = [
  isLeftAlone,
  unfinalized,
  rivalled,
  withoutKey,
  invalidSpec,
  settled,
  claimedOnly,
  unseen,
  takenByOthers,
  unclaimed,
  lost,
  inOtherProject,
  foreign,
  different,
  paused,
  ready,
]

export function decide(observed: Observed): Decision {
  const rules = observed.resource.metadata.deletionTimestamp === undefined ? LIVING : DELETED
  for (const rule of rules) {
    const decision = rule(observed)
    if (decision !== undefined) return decision
  }
  throw new Error('no rule decides')
}

function unfinalized({ resource }: Observed): Decision | undefined {
  return isHeld(resource.metadata.finalizers) ? undefined : { act: 'finalize' }
}

function rivalled({ rival, bufferId, claimed }: Observed): Decision | undefined {
  if (rival === undefined) return undefined
  const { name, isOwner } = rival
  // The buffer may have come of an intent of its own: that is known when it is its turn.
  const disowned = isOwner || claimed
  const outcome = { ...conflictWith(bufferId, name, isOwner), ...(disowned && { disowned: true as const }) }
  return { act: 'report', outcome, againMs: LOCAL_RETRY_MS }
}

function withoutKey({ key }: Observed): Decision | undefined {
  return key.ok ? undefined : stalled(key.reason, key.error)
}

function invalidSpec({ desired }: Observed): Decision | undefined {
  return desired.ok ? undefined : stalled(desired.reason, desired.error)
}

/** Nothing changed since the service last agreed, or last refused: it is not asked again for a while. */
function settled({ restMs }: Observed): Decision | undefined {
  return restMs > 0 ? { act: 'rest', forMs: restMs } : undefined
}

/** Right behind a claim: the look that preceded it found nothing. */
function claimedOnly(observed: Observed): Decision | undefined {
  const { claimed, remote, taken } = observed
  return claimed && remote === undefined && !taken ? create(observed) : undefined
}

function unseen(observed: Observed): Decision | undefined {
  return observed.remote === undefined ? { act: 'look', key: keyOf(observed) } : undefined
}

function takenByOthers({ remote, taken, claimed, bufferId }: Observed): Decision | undefined {
  if (remote !== 'absent' || !taken) return undefined
  // What was made keeps its claim: a key of another account may be what is wrong, and with it nothing can be deleted.
  const message = `the identifier ${bufferId} is taken by a buffer that the API key does not reach`
  return stalled('Conflict', message, claimed)
}

/** Also where an intent stands in the status and its creation left no trace: the next one is the first again. */
function unclaimed({ remote, claimed, resource }: Observed): Decision | undefined {
  if (remote !== 'absent' || claimed || wasMade(resource)) return undefined
  return { act: 'claim', adopt: false }
}

function lost(observed: Observed): Decision | undefined {
  return observed.remote === 'absent' ? create(observed) : undefined
}

function inOtherProject({ remote, resource, bufferId }: Observed): Decision | undefined {
  const { projectId } = seen(remote)
  if (projectId === resource.spec.projectId) return undefined
  return stalled('Conflict', `buffer ${bufferId} exists in the project ${projectId}`, true)
}

function foreign({ resource, claimed, bufferId }: Observed): Decision | undefined {
  if (resource.status?.bufferId !== undefined && !claimed) return undefined
  if (resource.spec.adoptionPolicy === 'Adopt') return { act: 'claim', adopt: true }
  return stalled('Conflict', `buffer ${bufferId} exists already; adoptionPolicy: Adopt takes it over`, true)
}

function different(observed: Observed): Decision | undefined {
  // What the service made of a change is its last word in this pass.
  if (observed.changed) return undefined
  const buffer = seen(observed.remote)
  const desired = observed.desired as DesiredBuffer
  const resumes = wakes(observed, buffer)
  const { enabled: _enabled, ...rest } = desired.config
  const enabled = resumes ? true : wantedState(desired.config.enabled, buffer)
  const patch = differenceOf(enabled === undefined ? rest : { ...rest, enabled }, buffer)
  if (patch === undefined) return undefined
  const reason = reasonOf(observed, resumes, buffer)
  return {
    act: 'change',
    key: keyOf(observed),
    patch,
    reason,
    note: `${NOTES[reason]}: ${changedFields(patch)}`,
  }
}

function paused({ remote, resource }: Observed): Decision | undefined {
  const buffer = seen(remote)
  if (buffer.enabled || isToBeDisabled(resource)) return undefined
  return { act: 'report', outcome: { state: 'paused', buffer } }
}

function ready({ remote }: Observed): Decision {
  return { act: 'report', outcome: { state: 'ready', buffer: seen(remote) } }
}

const NOTES: Readonly<Record<ChangeReason, string>> = {
  Updated: 'the buffer was updated',
  Corrected: 'the buffer had been changed at the service, and was set back',
  Resumed: 'the buffer was resumed',
  Paused: 'the buffer was paused',
}

function reasonOf(observed: Observed, resumes: boolean, { enabled }: Buffer): ChangeReason {
  if (resumes) return 'Resumed'
  if (isPaused(observed.resource) && enabled) return 'Paused'
  return isNew(observed) || hasNewSecrets(observed) ? 'Updated' : 'Corrected'
}

/** The service disabled it by itself (docs/reference/buffers.md, "Automatic pause"). */
export function isAutoPaused({ enabled, consecutiveDlqCount, dlqPauseThreshold }: Buffer): boolean {
  return !enabled && consecutiveDlqCount >= dlqPauseThreshold
}

/** undefined: as it is. An automatic pause is the service's own decision and stands. */
function wantedState(enabled: boolean | undefined, buffer: Buffer): boolean | undefined {
  return enabled === true && isAutoPaused(buffer) ? undefined : enabled
}

/** A paused buffer goes on when its user changed something about it, or says so. One that is taken over stays as it is. */
function wakes(observed: Observed, buffer: Buffer): boolean {
  if (buffer.enabled || isToBeDisabled(observed.resource)) return false
  const isChanged = isNew(observed) && observed.resource.status?.observedGeneration !== undefined
  const isPauseOver = isToldPaused(observed.resource.status) && !isAutoPaused(buffer)
  return asksToResume(observed) || isPauseOver || (isAutoPaused(buffer) && isChanged)
}

function isToBeDisabled(resource: Observed['resource']): boolean {
  return isPaused(resource) || resource.spec.enabled === false
}

function asksToResume({ resource }: Observed): boolean {
  const asked = resumeOf(resource.metadata.annotations)
  return asked !== undefined && asked !== resource.status?.lastHandledResume
}

/** What the annotation asks for, as the status remembers it. */
export function resumeOf(annotations: Readonly<Record<string, string>> | undefined): string | undefined {
  return asRemembered(annotations?.[RESUME_ANNOTATION])
}

/** The same of the one that asks for a comparison. */
export function reconcileOf(annotations: Readonly<Record<string, string>> | undefined): string | undefined {
  return asRemembered(annotations?.[RECONCILE_ANNOTATION])
}

function asRemembered(value: string | undefined): string | undefined {
  return value === undefined ? undefined : cutText(value, RESUME_MAX_LENGTH)
}

function isNew({ resource }: Observed): boolean {
  return resource.status?.observedGeneration !== resource.metadata.generation
}

function hasNewSecrets({ resource, secretVersions }: Observed): boolean {
  return (
    JSON.stringify(versionsOf(resource.status?.secretVersions)) !== JSON.stringify(versionsOf(secretVersions))
  )
}

/** Comparable: the API server may order a list by its own mind. */
export function versionsOf(versions: Observed['secretVersions'] = []): [string, string][] {
  return versions.map(({ name, resourceVersion }): [string, string] => [name, resourceVersion]).sort()
}

function create(observed: Observed): Decision {
  const again = wasMade(observed.resource)
  return { act: 'create', key: keyOf(observed), desired: observed.desired as DesiredBuffer, again }
}

/** The service has shown the buffer to this resource as its own. */
function wasMade({ status }: Observed['resource']): boolean {
  return status?.ingestPath !== undefined
}

function stalled(reason: string, message: string, disowned = false): Decision & { act: 'report' } {
  return {
    act: 'report',
    outcome: { state: 'stalled', reason, message, ...(disowned && { disowned: true as const }) },
  }
}

function keyOf({ key }: Observed): string {
  if (!key.ok) throw new Error('nothing is asked without an API key')
  return key.value
}

function seen(remote: Observed['remote']): Buffer {
  if (remote === undefined || remote === 'absent') throw new Error('the buffer was not looked at')
  return remote
}
