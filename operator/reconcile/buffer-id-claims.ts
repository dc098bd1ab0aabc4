/**
 * Which resource stands for which buffer: identifiers are unique in the installation, so of two resources that name one only
 * the first to claim it has it (docs/architecture/operator.md, "Whose buffer it is"). Only the leader claims; what an earlier
 * one claimed stands in the statuses.
 *
 * A claim is confirmed when the service has shown the buffer to the resource as its own, and then stands for good. Before that
 * it stands for `TRY_MS`, and longer only while a pass of its resource runs. Then those that wait for it have their turn, one
 * namespace after another. So nobody keeps an identifier by trying for ever, or by trying no more.
 *
 * Invariant: at most one resource at a time has a claim and acts on it. Of two that think a buffer theirs, one was shown it
 * as its own, and the other gives way.
 */
import type { Clock } from '../../internal/runtime/clock.ts'
import { keyOf, type Store } from '../controller/ports.ts'
import type { BufferResource } from '../resource.ts'
import { bufferIdOf } from './desired-buffer.ts'
import { isUnmanaged } from './left-alone.ts'
import type { Rival } from './observed.ts'

/** Index of the resources by the buffer that they describe. */
export const BUFFER_ID_INDEX = 'bufferId'
/** How long a claim stands that is not confirmed, ms. */
export const TRY_MS = 60_000
/** Who waits asks again every 30 s (`decide.ts`); who does not for so long, ms, waits no more. */
const WAIT_MS = 65_000
/** Resources whose claim has lapsed that are remembered. */
const LAPSED = 10_000

interface Claim {
  readonly uid: string
  /** Monotonic ms; Infinity: it is confirmed. */
  readonly until: number
}

export class BufferIdClaims {
  readonly #resources: Store<BufferResource>
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Those of this process, whose status may not be in the store yet. */
  readonly #claims = new Map<string, Claim>()
  /** When each namespace last asked for an identifier that it waits for, monotonic ms; the first in turn first. */
  readonly #waiting = new Map<string, Map<string, number>>()
  /** uids of those whose claim, or intent of an earlier process, ended without a confirmation. */
  readonly #lapsed = new Set<string>()
  /** uids of those whose pass runs. */
  readonly #running = new Set<string>()

  constructor(resources: Store<BufferResource>, clock: Pick<Clock, 'monotonic'>) {
    this.#resources = resources
    this.#clock = clock
  }

  /** Who has the buffer of this resource, or a claim on it. */
  rivalOf(resource: BufferResource): Rival | undefined {
    const claim = this.#standing(bufferIdOf(resource))
    if (claim?.uid === resource.metadata.uid) return undefined
    const others = this.#othersOf(resource)
    const isOwn = isConfirmed(resource)
    const owner = isOwn ? undefined : others.find(isConfirmed)
    if (owner !== undefined) return { name: keyOf(owner), isOwner: true }
    const isOwner = claim?.until === Number.POSITIVE_INFINITY
    const claimant = others.find(({ metadata }) => metadata.uid === claim?.uid)
    return claimant === undefined || (isOwn && !isOwner) ? undefined : { name: keyOf(claimant), isOwner }
  }

  /** A pass that begins wants the buffer, and has the claim from now on; else who comes first, and it waits for its turn. */
  contend(resource: BufferResource): Rival | undefined {
    const bufferId = bufferIdOf(resource)
    if (isConfirmed(resource) || this.#standing(bufferId)?.uid === resource.metadata.uid)
      return this.rivalOf(resource)
    const rival = this.rivalOf(resource)
    if (rival !== undefined) return this.#wait(resource, rival)
    const before = this.#earlierOf(resource) ?? this.#firstOf(resource)
    if (before !== undefined) return this.#wait(resource, { name: keyOf(before), isOwner: false })
    this.#claim(resource, TRY_MS)
    return undefined
  }

  /** The pass that contended runs: its claim stands until it ends. */
  begin({ metadata }: BufferResource): void {
    this.#running.add(metadata.uid)
  }

  end({ metadata }: BufferResource): void {
    this.#running.delete(metadata.uid)
  }

  /** The resource does not try to get its buffer. Nothing changes for one that was shown it as its own. */
  lapse(resource: BufferResource): void {
    if (isConfirmed(resource)) return
    const { uid } = resource.metadata
    this.release(bufferIdOf(resource), uid)
    if (this.#lapsed.size >= LAPSED) this.#lapsed.clear()
    this.#lapsed.add(uid)
  }

  /** The service has shown the buffer to the resource as its own. */
  confirm(resource: BufferResource): void {
    if (this.#claims.get(bufferIdOf(resource))?.uid === resource.metadata.uid)
      this.#claim(resource, Number.POSITIVE_INFINITY)
  }

  /** Whether a resource that is there has the buffer. */
  isHeld(bufferId: string): boolean {
    return this.#resources
      .byIndex(BUFFER_ID_INDEX, bufferId)
      .some(({ status }) => status?.bufferId === bufferId)
  }

  /** The resource is gone, or the buffer is not its own. */
  release(bufferId: string, uid: string): void {
    if (this.#claims.get(bufferId)?.uid === uid) this.#claims.delete(bufferId)
    this.#lapsed.delete(uid)
  }

  #claim(resource: BufferResource, ms: number): void {
    const bufferId = bufferIdOf(resource)
    const { uid, namespace } = resource.metadata
    this.#claims.set(bufferId, { uid, until: this.#clock.monotonic() + ms })
    this.#lapsed.delete(uid)
    const waiting = this.#waiting.get(bufferId)
    waiting?.delete(namespace)
    if (waiting?.size === 0 || ms === Number.POSITIVE_INFINITY) this.#waiting.delete(bufferId)
  }

  #standing(bufferId: string): Claim | undefined {
    const claim = this.#claims.get(bufferId)
    if (claim === undefined || claim.until > this.#clock.monotonic() || this.#running.has(claim.uid))
      return claim
    this.#claims.delete(bufferId)
    this.#lapsed.add(claim.uid)
    return undefined
  }

  /** An earlier process noted the intent of another resource, which may have made the buffer: it gets its time, once. */
  #earlierOf(resource: BufferResource): BufferResource | undefined {
    if (resource.status?.bufferId !== undefined) return undefined
    const bufferId = bufferIdOf(resource)
    const earlier = this.#othersOf(resource).find(
      (other) =>
        other.status?.bufferId === bufferId && !isUnmanaged(other) && !this.#lapsed.has(other.metadata.uid),
    )
    if (earlier !== undefined) this.#claim(earlier, TRY_MS)
    return earlier
  }

  /** Of the namespace whose turn it is, unless that is its own. */
  #firstOf(resource: BufferResource): BufferResource | undefined {
    const others = this.#othersOf(resource)
    const waiting = this.#waiting.get(bufferIdOf(resource)) ?? new Map<string, number>()
    for (const [namespace, askedAt] of waiting) {
      if (namespace === resource.metadata.namespace) return undefined
      const first = others.find(({ metadata }) => metadata.namespace === namespace)
      if (first !== undefined && this.#clock.monotonic() - askedAt < WAIT_MS) return first
      waiting.delete(namespace)
    }
    return undefined
  }

  #wait(resource: BufferResource, rival: Rival): Rival {
    if (rival.isOwner) return rival
    const bufferId = bufferIdOf(resource)
    const waiting = this.#waiting.get(bufferId) ?? new Map<string, number>()
    this.#waiting.set(bufferId, waiting.set(resource.metadata.namespace, this.#clock.monotonic()))
    return rival
  }

  #othersOf(resource: BufferResource): readonly BufferResource[] {
    return this.#resources
      .byIndex(BUFFER_ID_INDEX, bufferIdOf(resource))
      .filter(({ metadata }) => metadata.uid !== resource.metadata.uid)
  }
}

/** The service has shown the buffer to the resource as its own: only then its status has the path. */
function isConfirmed(resource: BufferResource): boolean {
  const { status } = resource
  return status?.bufferId === bufferIdOf(resource) && status.ingestPath !== undefined
}
