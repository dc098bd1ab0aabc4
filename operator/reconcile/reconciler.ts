/**
 * One pass for a resource (gather → decide → apply → status): it decides again after each look at the service, and ends
 * with the first write to the API server. A pass makes at most one change at the service, but for a creation where a
 * change found nothing. What fails and may heal is repeated by the queue; what only a change can heal rests.
 */
import type { Buffer } from '../../internal/domain/model.ts'
import type { Reconciler, Store } from '../controller/ports.ts'
import { keyOf } from '../controller/ports.ts'
import { type BufferResource, type BufferStatus, FINALIZER } from '../resource.ts'
import type { BufferIdClaims } from './buffer-id-claims.ts'
import { headlineOf, isSameStatus, statusAfter, statusOfClaim, telling } from './conditions.ts'
import { decide, reconcileOf, resumeOf } from './decide.ts'
import type { Asking, Decision, ReportedState } from './decision.ts'
import { bufferIdOf, creationOf } from './desired-buffer.ts'
import {
  fingerprintOf,
  type GatherOptions,
  gather,
  type Pass,
  secretsOf,
  verificationDelay,
} from './gather.ts'
import { Memory, newest, type Remembered } from './memory.ts'
import type { Observed } from './observed.ts'
import { afterConflict, Patience } from './patience.ts'
import {
  type AdminBuffers,
  AdminError,
  type BufferState,
  type BufferWriter,
  type EventSink,
  type ReconcileLog,
  type ServiceSigns,
  StaleError,
  type StateFollower,
} from './ports.ts'
import { afterRefusal, isRefusal, outcomeOf, outOfReachOf, withoutSecrets } from './refusal.ts'
import { COUNTS_EVERY_MS, hasOtherCounts, isNews, isSameState, withCounts } from './told.ts'
import { Vanished } from './vanished.ts'

export interface ReconcilerOptions extends GatherOptions {
  readonly resources: Store<BufferResource>
  readonly admin: AdminBuffers
  readonly writer: BufferWriter
  readonly events: EventSink
  readonly log: ReconcileLog
  readonly service: ServiceSigns
  readonly follower: StateFollower
}

export interface Requeue {
  requeueAfterMs?: number
}

/** More than any way through the rules takes. */
const MOST_STEPS = 8
/** The service told of a change that a look did not find yet, ms. */
const AFTER_NEWS_MS = 100

type Step = { readonly next: Observed } | { readonly done: Requeue }

export class BufferReconciler implements Reconciler {
  readonly #options: ReconcilerOptions
  readonly #claims: BufferIdClaims
  readonly #memory = new Memory()
  readonly #vanished = new Vanished()
  readonly #patience: Patience

  constructor(options: ReconcilerOptions) {
    this.#options = options
    this.#claims = options.claims
    this.#patience = new Patience(options)
  }

  /** The API server has removed the resource; to be called before the pass for it. */
  removed(last: BufferResource): void {
    // Whatever else there may be at the service, this process has not made it.
    if (this.#memory.knows(keyOf(last), last)) this.#vanished.note(last, this.#options.clock.now())
  }

  /** The service tells how the buffers of an API key stand, by their ids. Whether that asks for a pass of the resource. */
  told(key: string, states: ReadonlyMap<string, BufferState>): boolean {
    const resource = this.#options.resources.get(key)
    const memory = this.#memory.get(key)
    if (resource === undefined || memory?.uid !== resource.metadata.uid) return false
    const state = states.get(memory.bufferId) ?? null
    const isOld = isSameState(memory.state, state)
    memory.state = state
    if (isOld || !isNews(memory, resource.status, state)) return hasOtherCounts(resource.status, state)
    memory.settled = null
    memory.hasNews = true
    return true
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Requeue> {
    const subject = this.#subjectOf(key)
    if (subject === undefined) return {}
    const secrets = await secretsOf(subject, this.#options, signal)
    // Meanwhile it may have changed or gone, or another resource may have taken its buffer over.
    if (this.#subjectOf(key) !== subject) return { requeueAfterMs: 0 }
    const memory = this.#memory.of(key, subject)
    const vanished = subject === this.#vanished.get(key)
    const pass: Pass = { memory, signal, secrets, ...(vanished && { vanished }) }
    const observed = gather(subject, pass, this.#options)
    this.#options.follower.use(key, observed.key.ok && !vanished ? observed.key.value : undefined)
    this.#claims.begin(subject)
    try {
      const requeue = await this.#run(observed, pass)
      delete memory.conflicts
      return requeue
    } catch (error) {
      if (!(error instanceof StaleError)) throw error
      return { requeueAfterMs: afterConflict(memory) }
    } finally {
      this.#claims.end(subject)
    }
  }

  /** What a pass for the key is about now; undefined: nothing, and what was remembered is forgotten. */
  #subjectOf(key: string): BufferResource | undefined {
    const vanished = this.#vanished.get(key)
    // Another one may have adopted the buffer meanwhile.
    if (vanished !== undefined && !this.#claims.isHeld(bufferIdOf(vanished))) return vanished
    this.#vanished.letGo(key)
    const stored = this.#options.resources.get(key)
    const gone = this.#memory.forget(key, stored?.metadata.uid)
    if (gone) this.#claims.release(gone.bufferId, gone.uid)
    if (stored === undefined) {
      this.#options.service.forget(key)
      this.#options.follower.use(key, undefined)
      return undefined
    }
    const { written } = this.#memory.of(key, stored)
    const resource = newest(stored, written)
    // The store has caught up: a second copy of each resource would stand here for nothing.
    if (resource === stored) delete this.#memory.of(key, stored).written
    return resource
  }

  async #run(found: Observed, pass: Pass): Promise<Requeue> {
    let observed = found
    for (let steps = 0; steps < MOST_STEPS; steps++) {
      const step = await this.#apply(observed, decide(observed), pass)
      if ('done' in step) return step.done
      observed = step.next
    }
    throw new Error(`a pass for ${keyOf(observed.resource)} comes to no end`)
  }

  async #apply(observed: Observed, decision: Decision, pass: Pass): Promise<Step> {
    switch (decision.act) {
      case 'rest':
        this.#options.service.forget(keyOf(observed.resource))
        return { done: decision.forMs === undefined ? {} : await this.#rest(observed, decision.forMs, pass) }
      case 'finalize':
        await this.#finalize(observed, pass)
        return { done: {} }
      case 'claim':
        return this.#claim(observed, decision.adopt, pass)
      case 'release':
        return { done: await this.#release(observed, decision, pass) }
      case 'report':
        this.#options.service.forget(keyOf(observed.resource))
        return { done: await this.#report(observed, decision, pass) }
      default:
        return this.#ask(observed, decision, pass)
    }
  }

  /** What the service told of counts may be newer than the status. */
  async #rest({ resource, told }: Observed, forMs: number, pass: Pass): Promise<Requeue> {
    const { status } = resource
    if (status === undefined || !hasOtherCounts(status, told)) return { requeueAfterMs: forMs }
    const now = this.#options.clock.monotonic()
    const waitMs = (pass.memory.countedAt ?? Number.NEGATIVE_INFINITY) + COUNTS_EVERY_MS - now
    if (waitMs > 0) return { requeueAfterMs: Math.min(waitMs, forMs) }
    await this.#write(resource, withCounts(status, told), pass)
    pass.memory.countedAt = now
    return { requeueAfterMs: forMs }
  }

  /** What goes to the service, and what its refusals lead to. */
  async #ask(observed: Observed, decision: Asking, pass: Pass): Promise<Step> {
    const waitMs = this.#patience.leftMs(pass.memory)
    if (waitMs > 0) return { done: { requeueAfterMs: waitMs } }
    try {
      // From here until it is refused the buffer may have come of it.
      if (decision.act === 'create') pass.memory.claimed = false
      const next = await this.#send(observed, decision, pass)
      this.#options.service.answered()
      // That it found nothing may mean that it is another account's.
      if (next.remote !== undefined && next.remote !== 'absent') this.#see(next.remote, decision.key, pass)
      else delete pass.memory.seen
      delete pass.memory.hasNews
      pass.memory.deferrals = 0
      return { next }
    } catch (error) {
      if (!(error instanceof AdminError)) throw error
      if (error.kind === 'unavailable') this.#options.service.missed(keyOf(observed.resource))
      else this.#options.service.answered()
      if (decision.act === 'create' && isRefusal(error)) pass.memory.claimed = observed.claimed
      const refusal = withoutSecrets(error, observed)
      const next = afterRefusal(observed, decision, refusal)
      return next ? { next } : { done: await this.#fail(observed, refusal, decision, pass) }
    }
  }

  #see({ enabled, pausedAt, updatedAt }: Buffer, key: string, { memory }: Pass): void {
    memory.key = key
    memory.seen = { enabled, updatedAt, ...(pausedAt !== undefined && { pausedAt }) }
  }

  async #send(observed: Observed, decision: Asking, { memory, signal }: Pass): Promise<Observed> {
    const { admin } = this.#options
    const { resource, bufferId } = observed
    const { key } = decision
    switch (decision.act) {
      case 'look':
        return {
          ...observed,
          remote: (await admin.read(key, bufferId, signal, !mustBeNew(observed, memory))) ?? 'absent',
        }
      case 'create': {
        const remote = await admin.create(key, creationOf(decision.desired), signal)
        const reason = decision.again ? 'Recreated' : 'Created'
        const note = decision.again
          ? `the buffer ${bufferId} was gone, and was created again`
          : `created buffer ${bufferId}`
        this.#tell(resource, decision.again ? 'Warning' : 'Normal', reason, note)
        this.#tellLineEnds(observed)
        return { ...observed, remote, changed: true, claimed: false }
      }
      case 'change': {
        const remote = await admin.update(key, bufferId, decision.patch, signal)
        this.#tell(
          resource,
          decision.reason === 'Corrected' ? 'Warning' : 'Normal',
          decision.reason,
          decision.note,
        )
        this.#tellLineEnds(observed)
        return { ...observed, remote, changed: true }
      }
      case 'remove':
        if (!(await admin.remove(key, bufferId, signal))) return this.#missed(observed, key, signal)
        this.#options.log.info({ resource: keyOf(resource), bufferId }, 'buffer deleted')
        return { ...observed, removed: true }
    }
  }

  /** Not found: it is gone, or the key is one that does not reach it. */
  async #missed(observed: Observed, key: string, signal: AbortSignal): Promise<Observed> {
    const tried = [...(observed.tried ?? []), key]
    const outOfReach = outOfReachOf(observed.resource, await this.#options.admin.holder(key, signal))
    return outOfReach === undefined
      ? { ...observed, tried, missing: true }
      : { ...observed, tried, outOfReach }
  }

  async #finalize({ resource }: Observed, pass: Pass): Promise<void> {
    const finalizers = [...(resource.metadata.finalizers ?? []), FINALIZER]
    pass.memory.written = await this.#options.writer.setFinalizers(resource, finalizers)
  }

  async #claim(observed: Observed, adopt: boolean, pass: Pass): Promise<Step> {
    const { resource, bufferId, now } = observed
    if (!adopt && resource.status?.intentGeneration !== undefined) {
      pass.memory.claimed = true
      return { next: { ...observed, claimed: true } }
    }
    await this.#write(resource, statusOfClaim(resource, { bufferId, adopt, now }), pass)
    pass.memory.claimed = !adopt
    if (adopt)
      this.#tell(resource, 'Normal', 'Adopted', `buffer ${bufferId} exists, and is managed from now on`)
    // A change of the status alone asks for no pass.
    return { done: { requeueAfterMs: 0 } }
  }

  async #release(
    { resource, bufferId }: Observed,
    { orphaned, missing }: Decision & { act: 'release' },
    pass: Pass,
  ): Promise<Requeue> {
    // Also after a pass that deleted it and was killed before it could let the resource go.
    if (missing) this.#tell(resource, 'Normal', 'NotFound', `the buffer ${bufferId} was gone already`)
    if (orphaned !== undefined) {
      this.#tell(resource, 'Warning', 'Orphaned', `buffer ${bufferId} stays at the service: ${orphaned}`)
    }
    if (pass.vanished) {
      this.#vanished.letGo(keyOf(resource))
      // There may be another one of the name by now.
      return { requeueAfterMs: 0 }
    }
    const finalizers = (resource.metadata.finalizers ?? []).filter((each) => each !== FINALIZER)
    pass.memory.written = await this.#options.writer.setFinalizers(resource, finalizers)
    return {}
  }

  /** What the service agreed to, or what keeps the pass from asking it. */
  async #report(observed: Observed, decision: Decision & { act: 'report' }, pass: Pass): Promise<Requeue> {
    const { outcome, againMs } = decision
    await this.#conclude(observed, outcome, pass)
    if (outcome.state === 'ready' || outcome.state === 'paused') return this.#settle(observed, pass)
    pass.memory.settled = null
    return againMs === undefined ? {} : { requeueAfterMs: againMs }
  }

  async #fail(observed: Observed, error: AdminError, { act, key }: Asking, pass: Pass): Promise<Requeue> {
    const outcome = outcomeOf(error, act === 'create' && observed.claimed)
    await this.#conclude(observed, outcome, pass)
    if (outcome.state === 'stalled') return this.#settle(observed, pass)
    pass.memory.settled = null
    if (error.retryAfterMs === undefined) throw error
    return { requeueAfterMs: this.#patience.defer(error, error.retryAfterMs, key, pass.memory) }
  }

  #settle(observed: Observed, { memory }: Pass): Requeue {
    // What was told while the pass ran may be newer than what it saw. Once for each: the look is what counts in the end.
    const { seen, state } = memory
    if (
      seen !== undefined &&
      state != null &&
      state !== memory.lookedFor &&
      isNews(memory, undefined, state)
    ) {
      memory.lookedFor = state
      memory.settled = null
      memory.hasNews = true
      return { requeueAfterMs: AFTER_NEWS_MS }
    }
    const requeueAfterMs = verificationDelay(this.#options)
    const until = this.#options.clock.monotonic() + requeueAfterMs
    memory.settled = { fingerprint: fingerprintOf(observed), until }
    return { requeueAfterMs }
  }

  /** Writes the status when it says anything new, and tells of a new state. */
  async #conclude(observed: Observed, outcome: ReportedState, pass: Pass): Promise<void> {
    if (pass.vanished) return
    const { resource, bufferId, secretVersions, told, now, changed = false } = observed
    const before = resource.status
    const status = statusAfter(resource, { outcome, bufferId, secretVersions, told, now, changed })
    if (status.bufferId === undefined) this.#disown(observed, pass)
    else if (outcome.state === 'ready' || outcome.state === 'paused') this.#claims.confirm(resource)
    if (isSameStatus(before, status)) return
    await this.#write(resource, status, pass)
    const headline = headlineOf(status)
    // A change that was just told of is what made it ready.
    if (headline === headlineOf(before) || (changed && outcome.state === 'ready')) return
    const { reason, message } = telling(status)
    const isWell = outcome.state === 'ready' || outcome.state === 'released'
    this.#tell(resource, isWell ? 'Normal' : 'Warning', reason, message)
  }

  /** Others may have the identifier. Should the status fail to say so, the next pass finds an intent and looks. */
  #disown({ resource, bufferId }: Observed, { memory }: Pass): void {
    this.#claims.release(bufferId, resource.metadata.uid)
    memory.claimed = false
  }

  async #write(resource: BufferResource, status: BufferStatus, pass: Pass): Promise<void> {
    pass.memory.written = await this.#options.writer.applyStatus(resource, status)
  }

  /** With each change: who wrote the Secret may wonder why a signature differs. */
  #tellLineEnds({ resource, desired }: Observed): void {
    for (const secret of desired.ok ? desired.lineEnds : [])
      this.#tell(resource, 'Warning', 'SecretLineEnd', `the line end at the end of ${secret} was left out`)
  }

  #tell(resource: BufferResource, type: 'Normal' | 'Warning', reason: string, note: string): void {
    this.#options.events.record(resource, type, reason, note)
    this.#options.log.info({ resource: keyOf(resource), reason, note }, 'buffer')
  }
}

/** Somebody has just said that the buffer is another one now, or wants it looked at. */
function mustBeNew({ resource }: Observed, { hasNews }: Remembered): boolean {
  const { metadata, status } = resource
  return (
    hasNews === true ||
    resumeOf(metadata.annotations) !== status?.lastHandledResume ||
    reconcileOf(metadata.annotations) !== status?.lastHandledReconcile
  )
}
