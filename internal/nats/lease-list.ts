/** All leases that stand at one moment, for a command that is no node and watches nothing. */
import type { Lease } from '../shard/membership.ts'
import type { Connection } from './connection.ts'
import { LeaseBucket } from './lease-bucket.ts'
import { decodeLease, unreadableLease } from './lease-value.ts'
import { BrokerApiError, streamNotFound } from './stream-api.ts'

export interface LeaseList {
  /** In the order of boots. One that cannot be read stands with the role `admin`, without shards. */
  readonly leases: readonly Lease[]
  /** Since the bucket was made, by the broker's clock, ms; undefined: there is none. After its broker's restart nodes need some seconds to come back. */
  readonly bucketAgeMs: number | undefined
}

interface BucketInfo {
  ts: string
  created: string
  state: { subjects?: Record<string, number> }
}

const TIMEOUT_MS = 5_000

/** Rejects when the broker does not answer. `bucket`: default `penstock-leases`. */
export async function listLeases(connection: Connection, bucketName?: string): Promise<LeaseList> {
  const name = bucketName === undefined ? {} : { name: bucketName }
  const bucket = new LeaseBucket({ connection, replicas: 1, ttlMs: TIMEOUT_MS, ...name })
  const info = await bucket.api
    .ask<BucketInfo>('STREAM.INFO', { subjects_filter: '>' }, undefined, TIMEOUT_MS)
    .catch((error: unknown) => {
      if (error instanceof BrokerApiError && error.code === streamNotFound) return undefined
      throw error
    })
  if (info === undefined) return { leases: [], bucketAgeMs: undefined }
  const boots = Object.keys(info.state.subjects ?? {}).flatMap((subject) => bucket.keyOf(subject) ?? [])
  const found = await Promise.all(boots.sort().map((boot) => readOne(bucket, boot)))
  return {
    leases: found.flatMap((lease) => lease ?? []),
    bucketAgeMs: Date.parse(info.ts) - Date.parse(info.created),
  }
}

/** undefined: it was released, or has run out meanwhile. */
async function readOne(bucket: LeaseBucket, boot: string): Promise<Lease | undefined> {
  const stored = await bucket.read(boot, TIMEOUT_MS)
  if (stored?.data === undefined) return undefined
  const reading = decodeLease(stored.data, boot)
  return 'lease' in reading ? reading.lease : unreadableLease(boot)
}
