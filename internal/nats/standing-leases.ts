/**
 * The leases that stand at this moment, read without joining: what a node asks before it changes anything (design,
 * section 4, "Membership"). Writes nothing, not even the bucket.
 */
import type { Clock } from '../runtime/clock.ts'
import type { Lease } from '../shard/membership.ts'
import { type Connection, UnusableBrokerError } from './connection.ts'
import { LeaseBucket } from './lease-bucket.ts'
import { defaultLeaseTtlMs } from './lease-times.ts'
import { decodeLease } from './lease-value.ts'
import { BrokerApiError, streamNotFound } from './stream-api.ts'

/** A bucket without leader is waited for, ms; so is each of its answers. */
const patienceMs = 10_000
const pauseMs = 250
const answerMs = 2_000

/** Those that this version can read. Rejects with UnusableBrokerError when the bucket does not answer for 10 s. */
export async function standingLeases(connection: Connection, clock: Clock): Promise<Lease[]> {
  const bucket = new LeaseBucket({ connection, replicas: 1, ttlMs: defaultLeaseTtlMs })
  const deadline = clock.monotonic() + patienceMs
  for (;;) {
    try {
      return await readAll(bucket)
    } catch (cause) {
      if (clock.monotonic() > deadline) {
        const why = cause instanceof Error ? cause.message : String(cause)
        throw new UnusableBrokerError(`the leases of the other nodes cannot be read: ${why}`, { cause })
      }
      await new Promise<void>((resolve) => clock.after(pauseMs, resolve))
    }
  }
}

async function readAll(bucket: LeaseBucket): Promise<Lease[]> {
  const boots = (await subjectsOf(bucket)).flatMap((subject) => bucket.keyOf(subject) ?? [])
  const leases = await Promise.all(boots.map((boot) => readOne(bucket, boot)))
  return leases.filter((lease) => lease !== undefined)
}

async function subjectsOf(bucket: LeaseBucket): Promise<string[]> {
  try {
    const wanted = { subjects_filter: '>' }
    const { state } = await bucket.api.ask<BucketInfo>('STREAM.INFO', wanted, undefined, answerMs)
    return Object.keys(state.subjects ?? {})
  } catch (error) {
    if (error instanceof BrokerApiError && error.code === streamNotFound) return []
    throw error
  }
}

interface BucketInfo {
  state: { subjects?: Record<string, number> }
}

async function readOne(bucket: LeaseBucket, boot: string): Promise<Lease | undefined> {
  const stored = await bucket.read(boot, answerMs)
  if (stored?.data === undefined) return undefined
  const reading = decodeLease(stored.data, boot)
  return 'lease' in reading ? reading.lease : undefined
}
