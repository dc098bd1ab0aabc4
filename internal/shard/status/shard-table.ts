/**
 * All shards of the installation as one node sees them (`GET /shards` on the ops port): its own as they are at
 * this moment, the others as the leases tell. Membership only decides who tries, so this is a view, no proof of
 * who owns a shard: the journals are (`npm run shards`).
 */
import type { Clock } from '../../runtime/clock.ts'
import { withDeadline } from '../../runtime/deadline.ts'
import type { Broker, LogState } from '../broker.ts'
import type { ShardFigures } from '../figures.ts'
import type { Membership } from '../ownership/membership.ts'
import type { ShardSupervisor } from '../ownership/shard-supervisor.ts'

export interface ShardRow extends Partial<ShardFigures> {
  readonly shard: number
  /** Whether this node runs it, or tries to. */
  readonly here: boolean
  /**
   * `claiming`, `replaying`, `running`, `draining`; `quarantined`: it failed and is claimed again after a pause;
   * `lost`: the broker lost messages of it, and it waits for a repair; `elsewhere`.
   */
  readonly state: string
  /** Why it does not run here. */
  readonly trouble: string | null
  /** 0: not claimed. */
  readonly epoch: number
  /** Whose leases list it: none or two of them while it changes hands. */
  readonly owners: readonly { readonly boot: string; readonly node: string }[]
  /** Messages of the inbox that are not read yet; null: the broker did not say. */
  readonly lag: number | null
  /** The broker's clock minus this node's, ms, right within half of the time that the question took; null: not known. */
  readonly skewMs: number | null
}

export interface ShardTable {
  readonly boot: string
  /** Whether this node's lease surely stands: without it nothing is sealed or sent here. */
  readonly held: boolean
  /** Unix ms, by this node's clock. */
  readonly at: number
  readonly shards: readonly ShardRow[]
}

export interface ShardTableOptions {
  readonly boot: string
  readonly shards: number
  readonly clock: Clock
  readonly membership: Pick<Membership, 'leases' | 'held'>
  readonly broker: Pick<Broker, 'inbox'>
  readonly supervisors: () => Iterable<readonly [shard: number, ShardSupervisor]>
}

/** A table is the answer to everybody for so long, ms: what it costs does not grow with who asks. */
const SHOWN_MS = 1_000
const ANSWER_MS = 2_000

interface Look {
  readonly inbox: LogState
  readonly skewMs: number | null
}

/** Never rejects: what the broker does not answer in time is null. */
export function createShardTable(options: ShardTableOptions): () => Promise<ShardTable> {
  const { clock } = options
  let shown: { until: number; table: Promise<ShardTable> } | undefined
  return () => {
    if (shown === undefined || shown.until <= clock.monotonic()) {
      shown = { until: clock.monotonic() + SHOWN_MS, table: lookAtAll(options) }
    }
    return shown.table
  }
}

async function lookAtAll(options: ShardTableOptions): Promise<ShardTable> {
  const { boot, shards, clock, membership } = options
  const here = [...options.supervisors()].map(([shard]) => shard)
  const looks = new Map(
    await Promise.all(here.map(async (shard) => [shard, await look(options, shard)] as const)),
  )
  const supervisors = new Map(options.supervisors())
  const rows = Array.from({ length: shards }, (_, shard) =>
    rowOf(options, shard, supervisors.get(shard), looks.get(shard)),
  )
  return { boot, held: membership.held, at: clock.now(), shards: rows }
}

async function look({ broker, clock }: ShardTableOptions, shard: number): Promise<Look | undefined> {
  const began = clock.now()
  try {
    const inbox = await withDeadline(clock, ANSWER_MS, broker.inbox(shard).state())
    const skewMs = inbox.at === undefined ? null : Math.round(inbox.at - (began + clock.now()) / 2)
    return { inbox, skewMs }
  } catch {
    return undefined
  }
}

function rowOf(
  { membership, clock }: ShardTableOptions,
  shard: number,
  supervisor: ShardSupervisor | undefined,
  look: Look | undefined,
): ShardRow {
  const figures = supervisor?.shard?.figures(clock.now())
  const owners = membership.leases().filter((lease) => lease.shards.includes(shard))
  return {
    shard,
    here: supervisor !== undefined,
    state: supervisor?.state ?? 'elsewhere',
    trouble: supervisor?.trouble ?? null,
    epoch: supervisor?.shard?.epoch ?? 0,
    owners: owners.map(({ boot, node }) => ({ boot, node })),
    lag:
      figures && look
        ? Math.max(0, look.inbox.lastSeq + 1 - Math.max(figures.cursor, look.inbox.firstSeq))
        : null,
    skewMs: look?.skewMs ?? null,
    ...figures,
  }
}
