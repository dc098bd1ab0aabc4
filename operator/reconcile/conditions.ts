/**
 * The status that follows from what a pass found. Invariants: Ready is always there, the others only while they are true;
 * a time moves only with what it stands for; the same findings make the same status, so nothing is written twice.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Buffer } from '../../internal/domain/model.ts'
import {
  type BufferResource,
  type BufferStatus,
  type Condition,
  type ConditionType,
  PAUSE_ANNOTATION,
  type SecretVersion,
  UNMANAGED_ANNOTATION,
} from '../resource.ts'
import { isAutoPaused, reconcileOf, resumeOf } from './decide.ts'
import type { ReportedState } from './decision.ts'
import { isPaused, PAUSED_BY_ANNOTATION } from './pause.ts'
import type { BufferState } from './ports.ts'
import { cutText, timeText } from './texts.ts'
import { withCounts } from './told.ts'

export interface Findings {
  readonly outcome: ReportedState
  readonly bufferId: string
  readonly secretVersions: readonly SecretVersion[]
  /** How the service last told that the buffer stands. */
  readonly told: BufferState | undefined
  /** This pass changed the configuration at the service. */
  readonly changed: boolean
  /** Unix epoch ms. */
  readonly now: number
}

type Draft = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** Longest message of a condition. */
const MESSAGE_LENGTH = 1_024
/** Of the host, as the definition takes it. Names that are looked up have 253 characters at most; URLs may have longer ones. */
const HOST_LENGTH = 320

export function statusAfter(resource: BufferResource, findings: Findings): BufferStatus {
  const { outcome } = findings
  const before = resource.status ?? {}
  const conditions = conditionsOf(resource, draftsOf(resource, outcome), findings.now)
  if (outcome.state === 'retrying' || outcome.state === 'held') return { ...before, conditions }
  const observedGeneration = resource.metadata.generation
  if (outcome.state === 'stalled' || outcome.state === 'released') {
    const {
      bufferId: _id,
      customerId: _owner,
      intentGeneration: _intent,
      ingestPath: _path,
      ...disowned
    } = before
    const isOwn = outcome.state === 'stalled' && !outcome.disowned
    return { ...(isOwn ? before : disowned), observedGeneration, conditions }
  }
  const lastHandledResume = resumeOf(resource.metadata.annotations)
  const lastHandledReconcile = reconcileOf(resource.metadata.annotations)
  const lastSyncTime = findings.changed ? timeText(findings.now) : before.lastSyncTime
  return {
    ...counted(ownership(before, outcome.buffer), before, findings.told),
    observedGeneration,
    secretVersions: findings.secretVersions,
    ...(lastHandledResume !== undefined && { lastHandledResume }),
    ...(lastHandledReconcile !== undefined && { lastHandledReconcile }),
    ...(lastSyncTime !== undefined && { lastSyncTime }),
    conditions,
  }
}

/** The intent of a pass, written before the service hears of it. `adopt`: the buffer is there already. */
export function statusOfClaim(
  resource: BufferResource,
  { bufferId, adopt, now }: { bufferId: string; adopt: boolean; now: number },
): BufferStatus {
  const { intentGeneration: _old, ingestPath: _path, ...before } = resource.status ?? {}
  const [reason, message] = adopt
    ? ['Adopting', `taking over buffer ${bufferId}`]
    : ['Creating', `creating buffer ${bufferId}`]
  const drafts = [
    { type: 'Ready' as const, status: 'False' as const, reason, message },
    { type: 'Reconciling' as const, status: 'True' as const, reason, message },
  ]
  const stalled = conditionOf(before, 'Stalled')
  // Another attempt at what was refused is no news: the conditions would go back and forth at each.
  const again = stalled !== undefined && stalled.observedGeneration === resource.metadata.generation
  return {
    ...before,
    bufferId,
    ...(!adopt && { intentGeneration: resource.metadata.generation }),
    conditions: again ? before.conditions! : conditionsOf(resource, drafts, now),
  }
}

export function conditionOf(status: BufferStatus | undefined, type: ConditionType): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type)
}

/** The condition that says how it stands. */
export function telling(status: BufferStatus | undefined): { reason: string; message: string } {
  return (
    conditionOf(status, 'Stalled') ??
    conditionOf(status, 'Reconciling') ??
    conditionOf(status, 'Ready') ?? { reason: '', message: '' }
  )
}

/** What people are told when it changes. */
export function headlineOf(status: BufferStatus | undefined): string {
  const { reason, message } = telling(status)
  return `${reason} ${message}`
}

/** Whether they say the same. Lists that the API server keeps as maps have no order. */
export function isSameStatus(one: BufferStatus | undefined, other: BufferStatus): boolean {
  return isDeepStrictEqual(comparable(one), comparable(other))
}

function comparable(status: BufferStatus | undefined): unknown {
  if (status === undefined) return undefined
  const conditions = [...(status.conditions ?? [])].sort((a, b) => (a.type < b.type ? -1 : 1))
  const secretVersions = [...(status.secretVersions ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1))
  return { ...status, conditions, secretVersions }
}

function ownership(before: BufferStatus, buffer: Buffer): BufferStatus {
  const { bufferId, customerId, projectId, enabled, consecutiveDlqCount, pausedReason } = buffer
  const { intentGeneration } = before
  return {
    bufferId,
    customerId,
    ...(intentGeneration !== undefined && { intentGeneration }),
    ingestPath: `/v1/ingest/${projectId}/${bufferId}`,
    enabled,
    host: hostOf(buffer.delivery.url),
    ...(pausedReason !== undefined && { pausedReason }),
    consecutiveDlqCount,
  }
}

/** Those of the buffer as it was just seen count before what was told of it. */
function counted(owned: BufferStatus, before: BufferStatus, told: BufferState | undefined): BufferStatus {
  const { deadLetters, lastDeadLetterTime } = before
  const { consecutiveDlqCount } = owned
  if (told !== undefined)
    return { ...withCounts(owned, told), ...(consecutiveDlqCount !== undefined && { consecutiveDlqCount }) }
  return {
    ...owned,
    ...(deadLetters !== undefined && { deadLetters }),
    ...(lastDeadLetterTime !== undefined && { lastDeadLetterTime }),
  }
}

function draftsOf(resource: BufferResource, outcome: ReportedState): Draft[] {
  switch (outcome.state) {
    case 'ready':
      return [
        { type: 'Ready', status: 'True', reason: 'Synced', message: readyText(outcome.buffer) },
        ...(isPaused(resource) ? [PAUSED] : []),
      ]
    case 'paused': {
      const told = pauseOf(outcome.buffer)
      return [
        { type: 'Ready', status: 'False', ...told },
        { type: 'Paused', status: 'True', ...told },
      ]
    }
    case 'released': {
      const message = 'the resource is deleted, and waits for the finalizers of others'
      return [{ type: 'Ready', status: 'False', reason: 'Deleted', message }]
    }
    case 'held': {
      const ready = conditionOf(resource.status, 'Ready')
      const message = `the operator leaves the buffer as it is while the annotation ${UNMANAGED_ANNOTATION} is "true"`
      return [
        { type: 'Ready', status: ready?.status ?? 'False', reason: 'Unmanaged', message },
        ...stillPaused(resource),
      ]
    }
    case 'stalled': {
      const { reason, message } = outcome
      return [
        { type: 'Ready', status: 'False', reason, message },
        { type: 'Stalled', status: 'True', reason, message },
        ...stillPaused(resource),
      ]
    }
    case 'retrying': {
      const { reason, message } = outcome
      const ready = conditionOf(resource.status, 'Ready')
      return [
        stillHolds(resource, ready) ? ready! : { type: 'Ready', status: 'False', reason, message },
        { type: 'Reconciling', status: 'True', reason, message },
        ...stillPaused(resource),
      ]
    }
  }
}

const PAUSED: Draft = {
  type: 'Paused',
  status: 'True',
  reason: PAUSED_BY_ANNOTATION,
  message: `the buffer is disabled while the annotation ${PAUSE_ANNOTATION} is "true"`,
}

/** That nobody can look does not make a buffer worse than it was when it was last seen. */
function stillHolds({ metadata, status }: BufferResource, ready: Condition | undefined): boolean {
  const seen = ready?.status === 'True' || conditionOf(status, 'Paused') !== undefined
  const current = ready?.observedGeneration === metadata.generation
  return seen && current && metadata.deletionTimestamp === undefined
}

function stillPaused({ status }: BufferResource): Draft[] {
  const paused = conditionOf(status, 'Paused')
  return paused === undefined ? [] : [paused]
}

function hostOf(url: string): string {
  return cutText(new URL(url).host, HOST_LENGTH)
}

function readyText({ bufferId, enabled }: Buffer): string {
  return enabled
    ? `buffer ${bufferId} is as described here`
    : `buffer ${bufferId} is disabled, as described here`
}

function pauseOf(buffer: Buffer): { reason: string; message: string } {
  if (!isAutoPaused(buffer)) return { reason: 'Disabled', message: 'the buffer was disabled at the service' }
  const message = `the service disabled the buffer after ${buffer.consecutiveDlqCount} batches in a row went to the dead letter queue`
  return { reason: 'AutoPaused', message }
}

function conditionsOf(resource: BufferResource, drafts: readonly Draft[], now: number): Condition[] {
  return drafts.map(({ type, status, reason, message }) => {
    const before = conditionOf(resource.status, type)
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : timeText(now)
    const text = cutText(message, MESSAGE_LENGTH)
    return {
      type,
      status,
      reason,
      message: text,
      lastTransitionTime,
      observedGeneration: resource.metadata.generation,
    }
  })
}
