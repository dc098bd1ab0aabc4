/**
 * Every durable write of an owner into Postgres, and that a stale owner loses each of them
 * (docs/architecture/protocol.md, "Fencing in Postgres"; fault matrix, rows 7, 8 and 14). The lists follow from the
 * ports: a port or a method that is new does not compile here before somebody has said what it writes. What an owner
 * writes to the broker: `test/shard/owner-journal-writes.test.ts`.
 */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createDeletedBuffers } from '../../internal/postgres/deleted-buffers.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import type { ShardOptions } from '../../internal/shard/options.ts'
import {
  type DeadBatch,
  type DeadLetters,
  type DeletedBuffers,
  type Fence,
  FencedError,
  type Projection,
} from '../../internal/shard/ports.ts'
import { commitAt } from '../support/commit-names.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { bufferState, insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

/** What an owner is given, and whether it can write durably through it. */
const OUTLETS: Record<keyof Required<ShardOptions>, 'writes' | 'does not'> = {
  broker: 'writes',
  deadLetters: 'writes',
  deletedBuffers: 'writes',
  projection: 'writes',
  policies: 'does not',
  deliverer: 'does not',
  holds: 'does not',
  telemetry: 'does not',
  clock: 'does not',
  randomness: 'does not',
  limits: 'does not',
  largeWrites: 'does not',
  shard: 'does not',
  boot: 'does not',
  claim: 'does not',
  onEnd: 'does not',
}

interface Ports {
  deadLetters: DeadLetters
  deletedBuffers: DeletedBuffers
  projection: Projection
}

type Methods<P> = { [M in keyof P as P[M] extends (...given: never[]) => unknown ? M : never]: P[M] }

/**
 * `tables`: what the write of the present owner changes, every row compared; the same write of a stale owner changes
 * nothing and is refused. `raises`: an epoch above the stored one is stored by it, unless it says that it is not.
 * `open`: who calls it makes no difference, it changes nothing here.
 */
type Case<P> =
  | { write: (port: P, fence: Fence) => Promise<unknown>; tables: readonly string[]; raises?: false }
  | { open: (port: P, fence: Fence) => Promise<unknown> }

type Cases = { [P in keyof Ports]: { [M in keyof Methods<Ports[P]>]: Case<Ports[P]> } }

describe('the Postgres writes of an owner', () => {
  const OLD = 10
  const NEW = 11
  let db: Database
  let ports: Ports
  let buffer: TestBuffer
  let dead: DeadBatch
  let removed: DeadBatch

  before(async () => {
    db = connect(await freshDatabase(), { max: 4 })
    ports = {
      deadLetters: createDeadLetters(db),
      deletedBuffers: createDeletedBuffers(db, { shards: 1, graceMs: 0 }),
      projection: createProjection(db),
    }
  })
  after(() => db.end())

  /** A buffer one dead batch before its pause, a dead letter that is not recorded yet, a tombstone, a deleted buffer. */
  beforeEach(async () => {
    await db`TRUNCATE shards, projections, delivery_days, shard_reports, dlq_bodies, dlq_items, dlq_tombstones,
      buffers CASCADE`
    const customerId = await insertCustomer(db)
    buffer = await insertBuffer(db, customerId, { dlqPauseThreshold: 3 })
    const gone = await insertBuffer(db, customerId)
    await db`UPDATE buffers SET deleted_state = 'enabled', deleted_at = now() - interval '1 hour'
      WHERE uid = ${gone.uid}`
    const { deadLetters } = ports
    const fence = { shard: 0, epoch: OLD }
    ;[dead, removed] = [deadBatch(buffer), deadBatch(buffer)]
    for (const batch of [dead, removed]) await deadLetters.write(fence, batch)
    await db`DELETE FROM dlq_items WHERE dlq_id = ${removed.dlqId}`
  })

  const names = () => [dead, removed].map(({ groupId, version }) => ({ groupId, version }))
  const fact = (outcome: 'delivered' | 'dead') => ({
    outcome,
    bufferUid: buffer.uid,
    at: Date.UTC(2026, 0, 1),
    items: 1,
    attempts: 2,
    timeToFlushMs: 1,
    durationMs: 1,
  })
  const report = { before: '2026-01-01T00:00:00Z', position: 5, held: [randomUUID()] }

  const cases = {
    deadLetters: {
      remembered: { open: (port, { shard }) => port.remembered(shard) },
      // Only what was read before is replaced: who read an older claim is refused by its answer.
      replaceEpoch: { open: (port, fence) => port.replaceEpoch(fence, commitAt(fence.epoch)) },
      raiseEpoch: { write: (port, fence) => port.raiseEpoch(fence), tables: [] },
      known: { write: (port, fence) => port.known(fence, names()), tables: [] },
      // The row, its body, `consecutiveDlqCount`, the auto-pause, and the news of it.
      write: {
        write: (port, fence) => port.write(fence, deadBatch(buffer)),
        tables: ['buffers', 'config_changes', 'config_version', 'dlq_items'],
      },
      // Only the parts of a body; nothing refers to them before `write`.
      upload: {
        write: (port, fence) => port.upload(fence, deadBatch(buffer, { body: Buffer.alloc(100_000) })),
        tables: ['dlq_bodies', 'dlq_body_parts'],
        raises: false,
      },
      forgetTombstones: {
        write: (port, fence) => port.forgetTombstones(fence, names()),
        tables: ['dlq_items', 'dlq_tombstones'],
      },
    },
    // Usage counters, the position they reach, and `consecutiveDlqCount` set back.
    projection: {
      project: {
        write: (port, fence) =>
          port.project(fence, commitAt(1_000), (['dead', 'dead', 'delivered'] as const).map(fact)),
        tables: ['buffers', 'delivery_days', 'projections'],
      },
      position: { open: (port, { shard }) => port.position(shard) },
    },
    deletedBuffers: {
      report: { write: (port, fence) => port.report(fence, report), tables: ['shard_reports'] },
      pending: { open: (port, { shard }) => port.pending(shard) },
      // It removes what every shard let go of, behind its fence: true whoever asks.
      remove: { open: (port) => port.remove() },
    },
  } satisfies Cases

  const contents = async (): Promise<Map<string, string[]>> => {
    const tables = await db<{ name: string }[]>`
      SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1`
    const found = new Map<string, string[]>()
    for (const { name } of tables) {
      const rows = await db<{ row: string }[]>`SELECT t::text AS row FROM ${db(name)} t ORDER BY 1`
      found.set(
        name,
        rows.map(({ row }) => row),
      )
    }
    return found
  }

  /** Names of the tables in which `act` changed any row. */
  async function changedBy(act: () => Promise<unknown>): Promise<string[]> {
    const before = await contents()
    await act()
    const now = await contents()
    return [...now.keys()].filter((name) => now.get(name)!.join('\n') !== before.get(name)!.join('\n'))
  }

  for (const [name, methods] of Object.entries(cases) as [keyof Ports, Record<string, Case<never>>][]) {
    for (const [method, each] of Object.entries(methods)) {
      if ('open' in each) {
        it(`${name}.${method}: changes nothing, whoever calls it`, async () => {
          await ports.deadLetters.raiseEpoch({ shard: 0, epoch: NEW })
          const call = () => each.open(ports[name] as never, { shard: 0, epoch: OLD })
          expect(await changedBy(call)).to.deep.equal([])
        })
      } else {
        it(`${name}.${method}: refused to a stale owner, done for the present one`, async () => {
          const write = (epoch: number) => each.write(ports[name] as never, { shard: 0, epoch })
          await ports.deadLetters.raiseEpoch({ shard: 0, epoch: NEW })
          const refused = await changedBy(async () =>
            expect(await failureOf(write(OLD))).to.be.instanceOf(FencedError),
          )
          expect(refused).to.deep.equal([])
          expect(await changedBy(() => write(NEW))).to.deep.equal(each.tables)
          if (each.raises ?? true) expect(await changedBy(() => write(NEW + 1))).to.include('shards')
        })
      }
    }
  }

  it('of a dead letter and of a delivery: count, pause and its end are among them', async () => {
    const fence = { shard: 0, epoch: NEW }
    expect(await bufferState(db, buffer.uid)).to.include({ count: 2, enabled: true })
    await cases.deadLetters.write.write(ports.deadLetters, fence)
    expect(await bufferState(db, buffer.uid)).to.include({ count: 3, enabled: false })
    await cases.projection.project.write(ports.projection, fence)
    expect(await bufferState(db, buffer.uid)).to.include({ count: 1 })
  })

  it('are all that the ports offer', () => {
    for (const name of Object.keys(cases) as (keyof Ports)[]) {
      const port = ports[name] as unknown as Record<string, unknown>
      const offered = Object.keys(port).filter((method) => typeof port[method] === 'function')
      expect(Object.keys(cases[name]), name).to.have.members(offered)
    }
    const written = Object.entries(OUTLETS).flatMap(([name, what]) => (what === 'writes' ? [name] : []))
    expect(['broker', ...Object.keys(cases)]).to.have.members(written)
  })
})

async function failureOf(writing: Promise<unknown>): Promise<unknown> {
  return writing.then(
    () => undefined,
    (error: unknown) => error,
  )
}
