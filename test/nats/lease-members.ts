/** Members of an installation that share one process and one clock, each with a connection of its own. */
import { randomUUID } from 'node:crypto'
import { type JetStreamManager, StorageType } from 'nats'
import type { Connection } from '../../internal/nats/connection.ts'
import { joinLeases, type LeaseOptions, type Leases } from '../../internal/nats/leases/leases.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import type { Lease } from '../../internal/shard/ownership/membership.ts'
import { connectTo } from './support.ts'

/** Of the leases in tests, ms: two fifths of the usual. Half of it, and pauses of a busy machine look like faults. */
export const TTL_MS = 2_000
/** Where nothing has to expire, ms: no pause of the machine counts. */
export const LASTING = { ttlMs: 20_000 }
/** What a member tells of a broker that was slow for a moment, as on a busy machine. */
const SLOW = /could not be renewed|cannot be watched/
export const STREAM = 'KV_penstock-leases'

export function leaseOf(boot: string, shards: number[] = []): Lease {
  return {
    boot,
    role: 'actor',
    node: 'node',
    shards,
    accepting: true,
    webhooks: 'none',
    version: '0.1.0',
    since: 1.79e12,
    installation: { shards: 8, serializer: 1 },
  }
}

export interface Member {
  readonly boot: string
  readonly connection: Connection
  readonly leases: Leases
  readonly problems: string[]
  readonly fatal: Error[]
  /** Each value that `held` had at a change, with the time, monotonic ms. */
  readonly held: { held: boolean; at: number }[]
  changes(): number
  /** As a killed process does: no release, nothing is sent or heard any more. */
  kill(): Promise<void>
  /** Releases its lease. */
  leave(): Promise<void>
}

export interface Members {
  join(url: string, changes?: Partial<LeaseOptions>): Promise<Member>
  /** All that are left, at the end of a test. */
  leave(): Promise<void>
}

export function members(): Members {
  const all: Member[] = []
  return {
    async join(url, changes) {
      const member = await join(url, changes)
      all.push(member)
      return member
    },
    async leave() {
      await Promise.all(all.splice(0).map((member) => member.leave()))
    },
  }
}

async function join(url: string, changes: Partial<LeaseOptions> = {}): Promise<Member> {
  const { connection } = await connectTo(url)
  const problems: string[] = []
  const fatal: Error[] = []
  const boot = changes.node?.boot ?? randomUUID()
  const leases = await joinLeases({
    connection,
    ttlMs: TTL_MS,
    replicas: 1,
    clock: systemClock(),
    random: systemRandomness(),
    node: {
      boot,
      role: 'actor',
      node: 'node',
      version: '0.1.0',
      installation: { shards: 8, serializer: 1 },
    },
    onFatal: (error) => fatal.push(error),
    onProblem: (what, error) => problems.push(`${what}: ${error instanceof Error ? error.message : error}`),
    ...changes,
  }).catch(async (error: unknown) => {
    await connection.close()
    throw error
  })
  const held = [{ held: leases.held, at: performance.now() }]
  let changed = 0
  leases.onChange(() => {
    changed++
    if (held.at(-1)?.held !== leases.held) held.push({ held: leases.held, at: performance.now() })
  })
  return {
    boot,
    connection,
    leases,
    problems,
    fatal,
    held,
    changes: () => changed,
    kill: () => connection.nats.close(),
    async leave() {
      await leases.close()
      await connection.close()
    },
  }
}

/** What it told, without moments in which the broker was slow. */
export function problemsOf({ problems }: Member): string[] {
  return problems.filter((text) => !SLOW.test(text))
}

/** The boots that a member sees, in its order. */
export function boots({ leases }: Member): string[] {
  return leases.leases().map(({ boot }) => boot)
}

/** The bucket as somebody else may have made it. */
export async function addBucket(manager: JetStreamManager, changes: object): Promise<void> {
  await manager.streams.add({
    name: STREAM,
    subjects: ['$KV.penstock-leases.>'],
    storage: StorageType.Memory,
    max_msgs_per_subject: 1,
    ...changes,
  })
}
