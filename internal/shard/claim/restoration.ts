/**
 * Outstanding batches at a take-over. Their items are collected while the inbox is replayed; then each batch
 * is either known to Postgres (only its `dead` record is missing), complete (it goes on where it was), or
 * cannot be rebuilt (it is given up, docs/architecture/protocol.md, "Restored batches"). What a newer version of the
 * program sealed is left as it is, for a node that can build it. Groups without one do not wait for Postgres.
 */

import { TurnBudget } from '../../runtime/in-turns.ts'
import { retry } from '../../runtime/retry.ts'
import type { Batches } from '../batches/batches.ts'
import { SERIALIZER } from '../batches/body.ts'
import type { Projector } from '../batches/projector.ts'
import type { Duplicates } from '../held/duplicates.ts'
import type { LiveItem, LiveItems, OpenGroup } from '../held/live.ts'
import { batchKey } from '../journal/batch-name.ts'
import type { Journal } from '../journal/journal.ts'
import type { SettledRecord } from '../journal/records.ts'
import type { OpenBatch } from '../journal/state.ts'
import type { ShardEvents, ShardOptions } from '../options.ts'
import { type DeliveryFact, type Fence, FencedError } from '../ports.ts'

const RETRY_MS = 500
/** Items that are restored in one turn of the event loop, some ms. A batch by itself counts as so many. */
const ITEMS_A_TURN = 2_500
const BATCH_WEIGHT = 10

export interface RestorationOptions
  extends Pick<ShardOptions, 'clock' | 'deadLetters' | 'telemetry'>,
    Pick<ShardEvents, 'onFatal'> {
  readonly fence: Fence
  readonly outstanding: readonly OpenBatch[]
  /** Resolves when Postgres knows this epoch; rejects when it knows a higher one. */
  readonly raised: Promise<void>
}

export class Restoration {
  readonly #options: RestorationOptions
  readonly #groups = new Map<OpenBatch, OpenGroup>()
  #stopped = false
  #finished: boolean

  constructor(options: RestorationOptions) {
    this.#options = options
    this.#finished = options.outstanding.length === 0
  }

  /** Every batch is on its way. */
  get finished(): boolean {
    return this.#finished
  }

  stop(): void {
    this.#stopped = true
  }

  /** An item of an outstanding batch was read. */
  member(batch: OpenBatch, { group }: LiveItem): void {
    if (this.#groups.has(batch)) return
    this.#groups.set(batch, group)
    group.restoring++
  }

  /** After the replay: gives every batch its way on, in turns, and lets its group go on with the last batch of it. */
  async finish(into: {
    batches: Batches
    journal: Journal
    projector: Projector
    live: LiveItems
    duplicates: Duplicates
  }): Promise<void> {
    const { outstanding, clock } = this.#options
    if (outstanding.length === 0) return
    const known = await this.#known()
    if (this.#stopped) return
    this.#tellUnbuildable()
    const turns = new TurnBudget(clock, ITEMS_A_TURN)
    for (const batch of outstanding) {
      if (this.#stopped) return
      if (known.has(batchKey(batch))) this.#dead(batch, into)
      else this.#restore(batch, into)
      if (turns.spend(BATCH_WEIGHT + batch.seal.positions.length)) await turns.next()
    }
    this.#finished = true
  }

  #known(): Promise<Set<string>> {
    const { fence, deadLetters, outstanding, raised, clock, telemetry } = this.#options
    const names = outstanding.map(({ groupId, version }) => ({ groupId, version }))
    const ask = async () => {
      await raised
      return new Set((await deadLetters.known(fence, names)).map(batchKey))
    }
    const onFailure = (error: unknown) => {
      if (error instanceof FencedError || this.#stopped) throw error
      telemetry.problem({ shard: fence.shard, what: 'dead letters cannot be read', error: String(error) })
    }
    return retry(ask, { clock, pauseMs: RETRY_MS, onFailure })
  }

  #tellUnbuildable(): void {
    const { outstanding, telemetry, fence } = this.#options
    const newer = outstanding.filter(({ seal }) => seal.serializer > SERIALIZER)
    if (newer.length === 0) return
    telemetry.problem({
      shard: fence.shard,
      what: 'sealed batches wait for a node of a newer version',
      error: `serializer ${newer[0]!.seal.serializer}, this version knows them up to ${SERIALIZER}`,
      detail: { batches: newer.length },
    })
  }

  #dead(batch: OpenBatch, into: Parameters<Restoration['finish']>[0]): void {
    const items = itemsOf(batch, into.live)
    const record = deadRecord(batch, this.#options.clock.now())
    const { fact } = record
    into.journal.write(record, (seq, applied, data) => {
      if (applied) into.projector.add(seq, data, fact)
      this.#forgetTombstone(batch)
      for (const item of items) {
        into.duplicates.remove(item)
        into.live.remove(item)
      }
      this.#resume(batch, into.batches)
    })
  }

  /** Its row may have been deleted meanwhile: only until its `dead` record is there must nobody write it again. */
  #forgetTombstone({ groupId, version }: OpenBatch): void {
    const { deadLetters, fence, telemetry } = this.#options
    deadLetters.forgetTombstones(fence, [{ groupId, version }]).catch((error: unknown) => {
      telemetry.problem({ shard: fence.shard, what: 'a tombstone stays', error: String(error) })
    })
  }

  #restore(batch: OpenBatch, into: Parameters<Restoration['finish']>[0]): void {
    const { version, seal, attempt, nextAt } = batch
    const items = itemsOf(batch, into.live)
    const group = this.#groups.get(batch)
    if (!group || items.length < seal.positions.length) {
      this.#giveUp(batch, items.length, into.journal)
      return
    }
    into.batches.restore(group, {
      version,
      attempt,
      nextAt,
      items,
      segment: seal.segment,
      sealed: sealOf(batch),
    })
    this.#resume(batch, into.batches)
  }

  #resume(batch: OpenBatch, batches: Batches): void {
    const group = this.#groups.get(batch)
    if (!group) return
    group.restoring--
    if (group.restoring === 0) batches.resume(group)
  }

  /** Under our own fence: a stale owner that misses purged items is refused here. Then a fresh replay seals what is left anew. */
  #giveUp({ groupId, version, seal }: OpenBatch, found: number, journal: Journal): void {
    const { telemetry, fence, onFatal } = this.#options
    const detail = { groupId, version, items: seal.positions.length, found }
    telemetry.problem({
      shard: fence.shard,
      what: 'items of a sealed batch are missing',
      error: 'given up',
      detail,
    })
    journal.write({ type: 'unseal', groupId, version }, () =>
      onFatal(
        new Error(
          `batch ${version} of ${groupId} was given up: ${found} of ${seal.positions.length} items left`,
        ),
      ),
    )
  }
}

/** Those that were read, in the order of delivery. */
function itemsOf({ seal }: OpenBatch, live: LiveItems): LiveItem[] {
  return seal.positions.flatMap((position) => live.get(position) ?? [])
}

/** Of a batch that Postgres has as a dead letter; `at`: Unix ms. Its times are not known any more. */
export function deadRecord({ groupId, version, seal, attempt }: OpenBatch, at: number): SettledRecord {
  const fact: DeliveryFact = {
    outcome: 'dead',
    bufferUid: seal.bufferUid,
    at,
    items: seal.positions.length,
    attempts: attempt,
    timeToFlushMs: 0,
    durationMs: 0,
  }
  return { type: 'dead', groupId, version, fact }
}

function sealOf({ seal }: OpenBatch) {
  const { bodySha256, itemsHash, serializer, firstItemAt, lastActivityAt } = seal
  return { sha256: bodySha256, itemsHash, serializer, firstItemAt, lastActivityAt }
}
