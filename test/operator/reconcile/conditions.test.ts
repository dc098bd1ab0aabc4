import { expect } from 'chai'
import { describe, it } from 'mocha'
import { statusSchema } from '../../../operator/crd/status.ts'
import {
  headlineOf,
  isSameStatus,
  statusAfter,
  statusOfClaim,
} from '../../../operator/reconcile/conditions.ts'
import type { ReportedState } from '../../../operator/reconcile/decision.ts'
import type { BufferState } from '../../../operator/reconcile/ports.ts'
import {
  type BufferStatus,
  PAUSE_ANNOTATION,
  RECONCILE_ANNOTATION,
  UNMANAGED_ANNOTATION,
} from '../../../operator/resource.ts'
import { CLAIMED, type Given, NOW, resource, SYNCED, stored } from './fixtures.ts'

const NOW_TEXT = '2026-03-01T12:00:00Z'
const ready: ReportedState = { state: 'ready', buffer: stored() }
const stalled: ReportedState = { state: 'stalled', reason: 'InvalidSpec', message: 'no good' }
const retrying: ReportedState = { state: 'retrying', reason: 'ServiceUnavailable', message: 'away' }
const paused: ReportedState = {
  state: 'paused',
  buffer: stored(resource(), { enabled: false, consecutiveDlqCount: 3 }),
}

function statusOf(
  given: Given,
  outcome: ReportedState,
  { changed = false, told }: { changed?: boolean; told?: BufferState } = {},
): BufferStatus {
  const secretVersions = SYNCED.secretVersions!
  return statusAfter(resource(given), {
    outcome,
    bufferId: 'orders',
    secretVersions,
    told,
    changed,
    now: NOW,
  })
}

function summary(status: BufferStatus): string[] {
  return status.conditions!.map(({ type, status, reason, lastTransitionTime }) =>
    [type, status, reason, lastTransitionTime === NOW_TEXT ? 'now' : 'before'].join(' '),
  )
}

describe('the status', () => {
  it('says the same of the same findings, whenever they are made', () => {
    expect(statusOf({ status: SYNCED }, ready)).to.deep.equal(SYNCED)
  })

  it('is never without Ready, and has the others only while they hold', () => {
    expect(summary(statusOf({}, ready))).to.deep.equal(['Ready True Synced now'])
    expect(summary(statusOf({}, stalled))).to.deep.equal([
      'Ready False InvalidSpec now',
      'Stalled True InvalidSpec now',
    ])
    expect(summary(statusOf({}, retrying))).to.deep.equal([
      'Ready False ServiceUnavailable now',
      'Reconciling True ServiceUnavailable now',
    ])
    expect(summary(statusOf({}, paused))).to.deep.equal([
      'Ready False AutoPaused now',
      'Paused True AutoPaused now',
    ])
  })

  it('fits the definition, however long a host, a message or an annotation is', () => {
    const url = `https://${'a'.repeat(400)}.example/hook`
    const buffer = stored(resource(), { delivery: { ...stored().delivery, url } })
    const annotations = { [RECONCILE_ANNOTATION]: `${'x'.repeat(255)}\u{1f600}` }
    const status = statusOf({ metadata: { annotations } }, { state: 'ready', buffer })
    const { properties } = statusSchema
    expect(status.host).to.have.length(properties!.host!.maxLength!)
    // Half a character would come back as another one, and be written again and again.
    expect(status.lastHandledReconcile).to.equal(`${'x'.repeat(255)}\ufffd`)
    const message = `${'x'.repeat(1_023)}\u{1f600}`
    const said = statusOf({}, { ...stalled, message } as ReportedState).conditions![0]!.message
    expect(said).to.equal(`${'x'.repeat(1_023)}\ufffd`)
  })

  it('moves a time of a condition only with its status', () => {
    const broken = statusOf({ status: SYNCED }, stalled)
    expect(summary(broken)).to.deep.equal(['Ready False InvalidSpec now', 'Stalled True InvalidSpec now'])
    const earlier = {
      ...broken,
      conditions: broken.conditions!.map((each) => ({ ...each, lastTransitionTime: 'then' })),
    }
    const other = statusOf({ status: earlier, metadata: { generation: 2 } }, {
      ...stalled,
      reason: 'Forbidden',
    } as ReportedState)
    expect(summary(other)).to.deep.equal(['Ready False Forbidden before', 'Stalled True Forbidden before'])
    expect(other.conditions!.map(({ observedGeneration }) => observedGeneration)).to.deep.equal([2, 2])
  })

  it('tells when the service was last changed, not when it was last looked at', () => {
    expect(statusOf({ status: SYNCED }, ready).lastSyncTime).to.equal(SYNCED.lastSyncTime)
    expect(statusOf({ status: SYNCED }, ready, { changed: true }).lastSyncTime).to.equal(NOW_TEXT)
  })

  it('does not take a buffer for worse than it was seen because nobody can look', () => {
    expect(summary(statusOf({ status: SYNCED }, retrying))).to.deep.equal([
      'Ready True Synced before',
      'Reconciling True ServiceUnavailable now',
    ])
    const changed = statusOf({ status: SYNCED, metadata: { generation: 2 } }, retrying)
    expect(summary(changed)[0]).to.equal('Ready False ServiceUnavailable now')
    expect(changed.observedGeneration).to.equal(1)
    const deleted = statusOf({ status: SYNCED, metadata: { deletionTimestamp: NOW_TEXT } }, retrying)
    expect(summary(deleted)[0]).to.equal('Ready False ServiceUnavailable now')
  })

  it('keeps what it knows of the buffer while something is wrong, and lets go of one that is another`s', () => {
    expect(statusOf({ status: SYNCED }, stalled)).to.deep.include({ bufferId: 'orders', enabled: true })
    const disowned = statusOf({ status: SYNCED }, { ...stalled, disowned: true } as ReportedState)
    expect(disowned).to.not.have.any.keys('bufferId', 'intentGeneration', 'ingestPath')
  })

  it('notes an intent before the buffer is made, and another before it is taken over', () => {
    const made = statusOfClaim(resource(), { bufferId: 'orders', adopt: false, now: NOW })
    expect(made).to.deep.include({ bufferId: 'orders', intentGeneration: 1 })
    expect(summary(made)).to.deep.equal(['Ready False Creating now', 'Reconciling True Creating now'])
    const taken = statusOfClaim(resource({ status: CLAIMED }), { bufferId: 'orders', adopt: true, now: NOW })
    expect(taken).to.not.have.property('intentGeneration')
    expect(summary(taken)[0]).to.equal('Ready False Adopting now')
  })

  it('does not go back and forth while an attempt is refused time and again', () => {
    const refused = statusOf({}, { ...stalled, disowned: true } as ReportedState)
    const claimed = statusOfClaim(resource({ status: refused }), { bufferId: 'orders', adopt: false, now: 0 })
    expect(claimed.conditions).to.deep.equal(refused.conditions)
    expect(statusOf({ status: claimed }, { ...stalled, disowned: true } as ReportedState)).to.deep.equal(
      refused,
    )
  })

  it('is the same in whatever order the API server gives its lists', () => {
    const status: BufferStatus = {
      ...statusOf({}, paused),
      secretVersions: ['a', 'b'].map((name) => ({ name, resourceVersion: '1' })),
    }
    const turned = {
      ...status,
      conditions: status.conditions!.toReversed(),
      secretVersions: status.secretVersions!.toReversed(),
    }
    expect(isSameStatus(turned, status)).to.equal(true)
    expect(isSameStatus(undefined, status)).to.equal(false)
    expect(isSameStatus({ ...turned, enabled: false }, { ...status, enabled: true })).to.equal(false)
  })

  it('tells first what keeps it from being ready', () => {
    expect(headlineOf(undefined)).to.equal(' ')
    expect(headlineOf(statusOf({}, stalled))).to.equal('InvalidSpec no good')
    expect(headlineOf(statusOf({ status: SYNCED }, retrying))).to.equal('ServiceUnavailable away')
    expect(headlineOf(statusOf({}, ready))).to.match(/^Synced /)
  })

  it('has the counts that the service told of, and keeps them where it told nothing', () => {
    const told: BufferState = {
      bufferId: 'orders',
      enabled: true,
      updatedAt: 1,
      consecutiveDlqCount: 2,
      deadLetters: 7,
      lastDeadLetterAt: NOW,
    }
    const counts = { deadLetters: 7, lastDeadLetterTime: NOW_TEXT }
    const counted = statusOf({ status: SYNCED }, ready, { told })
    // What the pass has just seen of the buffer itself is newer.
    expect(counted).to.deep.equal({ ...SYNCED, ...counts })
    expect(statusOf({ status: counted }, ready)).to.deep.equal(counted)
    const { lastDeadLetterAt: _, ...none } = told
    expect(statusOf({ status: counted }, ready, { told: { ...none, deadLetters: 0 } })).to.deep.equal({
      ...SYNCED,
      deadLetters: 0,
    })
  })

  it('says why the service paused the buffer, as long as it is', () => {
    const buffer = stored(resource(), {
      enabled: false,
      consecutiveDlqCount: 3,
      pausedReason: 'consecutive_dead_letters',
    })
    const status = statusOf({ status: SYNCED }, { state: 'paused', buffer })
    expect(status).to.include({ enabled: false, pausedReason: 'consecutive_dead_letters' })
    expect(statusOf({ status }, ready)).to.not.have.property('pausedReason')
  })

  it('is ready and paused while the buffer is disabled for its annotation', () => {
    const metadata = { annotations: { [PAUSE_ANNOTATION]: 'true' } }
    const buffer = stored(resource(), { enabled: false })
    const status = statusOf({ metadata, status: SYNCED }, { state: 'ready', buffer })
    expect(summary(status)).to.deep.equal(['Ready True Synced before', 'Paused True PausedByAnnotation now'])
    expect(summary(statusOf({ status }, ready))).to.deep.equal(['Ready True Synced before'])
  })

  it('stays as it is while the operator leaves the buffer alone, and says so', () => {
    const metadata = { generation: 2, annotations: { [UNMANAGED_ANNOTATION]: 'true' } }
    const { conditions, ...rest } = statusOf({ metadata, status: SYNCED }, { state: 'held' })
    expect(rest).to.deep.equal((({ conditions: _, ...before }) => before)(SYNCED))
    expect(summary({ conditions: conditions! })).to.deep.equal(['Ready True Unmanaged before'])
    expect(summary(statusOf({ metadata }, { state: 'held' }))).to.deep.equal(['Ready False Unmanaged now'])
  })

  it('notes the value of the annotation that asked for a comparison', () => {
    const metadata = { annotations: { [RECONCILE_ANNOTATION]: 'x'.repeat(300) } }
    expect(statusOf({ metadata, status: SYNCED }, ready).lastHandledReconcile).to.equal('x'.repeat(256))
  })

  it('cuts what is too long', () => {
    const long = statusOf({}, { ...stalled, message: 'x'.repeat(5_000) } as ReportedState)
    expect(long.conditions!.map(({ message }) => message.length)).to.deep.equal([1_024, 1_024])
  })
})
