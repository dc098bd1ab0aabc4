/**
 * A lease as it stands in the bucket: JSON of the lease, with the instance that wrote it and the number of its
 * write, by which a writer tells its own renewals from anybody else's.
 *
 * Fields that are not known are ignored, so a newer version can add some; whatever else cannot be read still
 * counts as a lease, for its writer lives: see `unreadableLease`.
 */
import type { Lease, NodeRole, Webhooks } from '../../shard/ownership/membership.ts'

/** Of the fields below; a later one keeps their meaning. */
const FORMAT_VERSION = 1

const roles: readonly unknown[] = ['actor', 'ingress', 'admin', 'penstock'] satisfies NodeRole[]

const webhooks: readonly unknown[] = ['taken', 'ending', 'none'] satisfies Webhooks[]

/** Who wrote a value: a random UUID of the writing instance, and the number of its write, from 1. */
export interface LeaseMark {
  readonly writer: string
  readonly beat: number
}

export function encodeLease(lease: Lease, mark: LeaseMark): Uint8Array {
  return Buffer.from(JSON.stringify({ v: FORMAT_VERSION, ...mark, ...lease }))
}

/** What a value says; `fault` names the field that cannot be read, and there is no lease then. */
export type LeaseReading = { mark?: LeaseMark } & ({ lease: Lease } | { fault: string })

/** `boot`: the key under which the value stands. */
export function decodeLease(data: Uint8Array, boot: string): LeaseReading {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString())
  } catch {
    return { fault: 'not JSON' }
  }
  if (!isRecord(value)) return { fault: 'not an object' }
  const mark = readMark(value)
  const fault = faultOf(value, boot)
  return { ...(mark && { mark }), ...(fault === undefined ? { lease: readLease(value) } : { fault }) }
}

/** Stands in for a value that cannot be read: a process lives, and nothing can be placed on it. */
export function unreadableLease(boot: string): Lease {
  const installation = { shards: 0, serializer: 0 }
  return {
    boot,
    role: 'admin',
    node: '',
    shards: [],
    accepting: false,
    webhooks: 'none',
    installation,
    version: '',
    since: 0,
  }
}

type Fields = Record<string, unknown>

/** The first field that is not what it must be. */
function faultOf(value: Fields, boot: string): string | undefined {
  const { installation } = value
  const demands: [string, boolean][] = [
    ['v', isCount(value.v) && value.v >= FORMAT_VERSION],
    ['boot', value.boot === boot],
    ['role', roles.includes(value.role)],
    ['node', typeof value.node === 'string'],
    ['shards', Array.isArray(value.shards) && value.shards.every(isCount)],
    ['accepting', typeof value.accepting === 'boolean'],
    ['installation.shards', isRecord(installation) && isCount(installation.shards)],
    ['installation.serializer', isRecord(installation) && isCount(installation.serializer)],
    ['version', typeof value.version === 'string'],
    ['since', isCount(value.since)],
  ]
  const broken = demands.find(([, met]) => !met)?.[0]
  return broken === undefined ? undefined : `${broken} is ${JSON.stringify(fieldOf(value, broken))}`
}

function fieldOf(value: Fields, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), value)
}

/** Of a value without fault. */
function readLease(value: Fields): Lease {
  const { boot, role, node, shards, accepting, installation, version, since } = value as unknown as Lease
  return {
    boot,
    role,
    node,
    accepting,
    // Earlier versions do not have it, and later ones may say more.
    webhooks: webhooks.includes(value.webhooks) ? (value.webhooks as Webhooks) : 'none',
    version,
    since,
    shards: ascending(shards),
    installation: { shards: installation.shards, serializer: installation.serializer },
  }
}

function readMark({ writer, beat }: Fields): LeaseMark | undefined {
  return typeof writer === 'string' && isCount(beat) ? { writer, beat } : undefined
}

/** Each once, in order. */
export function ascending(shards: readonly number[]): number[] {
  return [...new Set(shards)].sort((one, other) => one - other)
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
