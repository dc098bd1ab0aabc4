/**
 * The leases that stand at this moment, read without joining: what a node asks before it changes anything, and a
 * command that is no node (docs/architecture/protocol.md, "Membership"). Writes nothing, not even the bucket.
 */

import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import { messageOf } from '../../runtime/thrown.ts'
import type { Lease } from '../../shard/ownership/membership.ts'
import { type Connection, UnusableBrokerError } from '../connection.ts'
import { BrokerApiError, STREAM_NOT_FOUND } from '../streams/stream-api.ts'
import { LeaseBucket } from './lease-bucket.ts'
import { DEFAULT_LEASE_TTL_MS } from './lease-times.ts'
import { decodeLease, unreadableLease } from './lease-value.ts'

export interface StandingLeases {
  /** In the order of boots. One that cannot be read stands with the role `admin`, without shards. */
  readonly leases: readonly Lease[]
  /** Since the bucket was made, by the broker's clock, ms; undefined: there is none. After its broker's restart nodes need some seconds to come back. */
  readonly bucketAgeMs: number | undefined
}

/** A bucket without leader is waited for, ms; so is each of its answers. */
const PATIENCE_MS = 10_000
const PAUSE_MS = 250
const ANSWER_MS = 2_000

/** Rejects with UnusableBrokerError when the bucket does not answer for 10 s. */
export async function standingLeases(connection: Connection, clock: Clock): Promise<StandingLeases> {
  const bucket = new LeaseBucket({ connection, replicas: 1, ttlMs: DEFAULT_LEASE_TTL_MS })
  const deadline = clock.monotonic() + PATIENCE_MS
  for (;;) {
    try {
      return await readAll(bucket)
    } catch (cause) {
      if (clock.monotonic() > deadline) {
        const why = messageOf(cause)
        throw new UnusableBrokerError(`the leases of the nodes cannot be read: ${why}`, { cause })
      }
      await sleep(clock, PAUSE_MS)
    }
  }
}

async function readAll(bucket: LeaseBucket): Promise<StandingLeases> {
  const info = await infoOf(bucket)
  if (info === undefined) return { leases: [], bucketAgeMs: undefined }
  const boots = Object.keys(info.state.subjects ?? {}).flatMap((subject) => bucket.keyOf(subject) ?? [])
  const found = await Promise.all(boots.sort().map((boot) => readOne(bucket, boot)))
  return {
    leases: found.flatMap((lease) => lease ?? []),
    bucketAgeMs: Date.parse(info.ts) - Date.parse(info.created),
  }
}

interface BucketInfo {
  ts: string
  created: string
  state: { subjects?: Record<string, number> }
}

/** undefined: there is no bucket. */
async function infoOf(bucket: LeaseBucket): Promise<BucketInfo | undefined> {
  try {
    return await bucket.api.ask<BucketInfo>('STREAM.INFO', { subjects_filter: '>' }, undefined, ANSWER_MS)
  } catch (error) {
    if (error instanceof BrokerApiError && error.code === STREAM_NOT_FOUND) return undefined
    throw error
  }
}

/** undefined: it was released, or has run out meanwhile. */
async function readOne(bucket: LeaseBucket, boot: string): Promise<Lease | undefined> {
  const stored = await bucket.read(boot, ANSWER_MS)
  if (stored?.data === undefined) return undefined
  const reading = decodeLease(stored.data, boot)
  return 'lease' in reading ? reading.lease : unreadableLease(boot)
}
