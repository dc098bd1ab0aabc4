/** Brings together what a pass decides on, without asking the service: that is a decision of its own. */
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'
import type { Store } from '../controller/ports.ts'
import type { BufferResource } from '../resource.ts'
import type { BufferIdClaims } from './buffer-id-claims.ts'
import { conditionOf } from './conditions.ts'
import { reconcileOf, resumeOf, versionsOf } from './decide.ts'
import { bufferIdOf, desiredBufferOf } from './desired-buffer.ts'
import { isUnmanaged } from './left-alone.ts'
import type { Remembered } from './memory.ts'
import type { Observed, Rival } from './observed.ts'
import { isPaused, isToldPaused } from './pause.ts'
import type { SecretMetadata, SecretResource, SecretValues } from './ports.ts'
import { apiKey, type FindSecret, secretKeys, secretVersions } from './secret-values.ts'

export interface GatherOptions {
  readonly secrets: Store<SecretMetadata>
  readonly values: SecretValues
  readonly claims: BufferIdClaims
  readonly clock: Clock
  readonly randomness: Randomness
  /** How often a buffer is compared with its resource when neither changed, ms. */
  readonly verifyMs: number
}

/** Those that a resource names and that are there, by their names. */
export type Secrets = ReadonlyMap<string, SecretResource>

/** One pass of one resource. */
export interface Pass {
  readonly memory: Remembered
  readonly signal: AbortSignal
  readonly secrets: Secrets
  /** The resource is not at the API server any more: nothing is written there, or told. */
  readonly vanished?: true
}

/** Of one moment: nothing is waited for. */
export function gather(
  resource: BufferResource,
  { memory, secrets }: Pick<Pass, 'memory' | 'secrets'>,
  options: GatherOptions,
): Observed {
  const { clock } = options
  const find: FindSecret = (name) => secrets.get(name)
  const key = apiKey(resource.spec.credentialsRef, find)
  if (key.ok) memory.readKey = key.value
  const mayStrand = find(resource.spec.credentialsRef.name) === undefined
  const observed = {
    resource,
    bufferId: bufferIdOf(resource),
    key,
    mayStrand,
    strandedMs: strandedMs(resource, mayStrand, memory, clock),
    claimed: memory.claimed === true,
    desired: desiredBufferOf(resource, find),
    secretVersions: secretVersions(resource, find),
    told: memory.state ?? undefined,
    now: clock.now(),
  }
  const restMs = restOf(observed, memory, options)
  const lastKeys = [memory.key, memory.readKey].filter((each) => each !== undefined)
  return { ...observed, rival: rivalOf(observed, restMs, options), lastKeys, restMs }
}

/** Only who tries to get a buffer, or to delete one that may be its own, keeps others from it, or waits for it. */
function rivalOf(
  { resource, key, desired }: Gathered,
  restMs: number,
  { claims }: GatherOptions,
): Rival | undefined {
  const isDeleted = resource.metadata.deletionTimestamp !== undefined
  const tries = isDeleted ? resource.status?.bufferId !== undefined : key.ok && desired.ok && restMs === 0
  if (tries && !isUnmanaged(resource)) return claims.contend(resource)
  claims.lapse(resource)
  return claims.rivalOf(resource)
}

/** Rejects where one cannot be read. */
export async function secretsOf(
  resource: BufferResource,
  { secrets, values }: Pick<GatherOptions, 'secrets' | 'values'>,
  signal: AbortSignal,
): Promise<Secrets> {
  const found = new Map<string, SecretResource>()
  // One after another: somebody may have made them large.
  for (const [name, keys] of secretKeys(resource)) {
    const known = secrets.get(`${resource.metadata.namespace}/${name}`)
    const secret = known && (await values.read(known, keys, signal))
    if (secret !== undefined) found.set(name, secret)
  }
  return found
}

/** Not from its deletion on: that may be long ago when this process starts. */
function strandedMs(
  { metadata }: BufferResource,
  mayStrand: boolean,
  memory: Remembered,
  clock: Clock,
): number {
  if (metadata.deletionTimestamp === undefined) return 0
  if (!mayStrand) {
    delete memory.strandedSince
    return 0
  }
  memory.strandedSince ??= clock.monotonic()
  return clock.monotonic() - memory.strandedSince
}

/** A change of it asks for another look at the service. */
export function fingerprintOf({
  resource,
  secretVersions,
}: Pick<Observed, 'resource' | 'secretVersions'>): string {
  const { generation, annotations } = resource.metadata
  const asked = [resumeOf(annotations) ?? null, reconcileOf(annotations) ?? null]
  return JSON.stringify([generation, ...asked, isPaused(resource), versionsOf(secretVersions)])
}

/** Until a settled buffer is looked at again, ms; spread, so that many of one moment do not come back in one. */
export function verificationDelay({ verifyMs, randomness }: GatherOptions): number {
  return verifyMs * (0.9 + 0.2 * randomness.fraction())
}

type Gathered = Omit<Observed, 'restMs' | 'lastKeys' | 'rival'>

function restOf(observed: Gathered, memory: Remembered, options: GatherOptions): number {
  const fingerprint = fingerprintOf(observed)
  const now = options.clock.monotonic()
  if (memory.settled === undefined && agrees(observed)) {
    // An operator that starts anew believes the status, and looks at all buffers once within the usual time.
    memory.settled = { fingerprint, until: now + options.verifyMs * options.randomness.fraction() }
    if (observed.key.ok) memory.key = observed.key.value
  }
  const { settled } = memory
  return settled?.fingerprint === fingerprint ? Math.max(0, settled.until - now) : 0
}

function agrees({ resource, secretVersions }: Gathered): boolean {
  const { status, metadata } = resource
  return (
    conditionOf(status, 'Ready')?.status === 'True' &&
    conditionOf(status, 'Reconciling') === undefined &&
    isToldPaused(status) === isPaused(resource) &&
    status?.observedGeneration === metadata.generation &&
    status.lastHandledResume === resumeOf(metadata.annotations) &&
    status.lastHandledReconcile === reconcileOf(metadata.annotations) &&
    JSON.stringify(versionsOf(status.secretVersions)) === JSON.stringify(versionsOf(secretVersions))
  )
}
