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
import type { BatchesOwner } from '../batches/owner.ts'
import type { LiveItem, LiveItems, OpenGroup } from '../held/live.ts'
import { batchKey } from '../journal/batch-name.ts'
import type { SettledRecord } from '../journal/records.ts'
import type { OpenBatch } from '../journal/state.ts'
import { type DeliveryFact, FencedError } from '../ports.ts'

const RETRY_MS = 500
/** Items that are restored in one turn of the event loop, some ms. A batch by itself counts as so many. */
const ITEMS_A_TURN = 2_500
const BATCH_WEIGHT = 10

type Taken = 'clock' | 'deadLetters' | 'telemetry' | 'fence' | 'raised' | 'live'

export interface RestorationOptions extends Pick<BatchesOwner, Taken> {
  readonly outstanding: readonly OpenBatch[]
  readonly batches: Batches
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
  async finish(): Promise<void> {
    const { outstanding, clock } = this.#options
    if (outstanding.length === 0) return
    const known = await this.#known()
    if (this.#stopped) return
    this.#tellUnbuildable()
    const turns = new TurnBudget(clock, ITEMS_A_TURN)
    for (const batch of outstanding) {
      if (this.#stopped) return
      if (known.has(batchKey(batch))) this.#dead(batch)
      else this.#restore(batch)
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

  #dead(batch: OpenBatch): void {
    const { clock, live, batches } = this.#options
    const record = deadRecord(batch, clock.now())
    batches.settlement.end(record, itemsOf(batch, live), () => this.#resume(batch))
  }

  #restore(batch: OpenBatch): void {
    const { live, batches } = this.#options
    const items = itemsOf(batch, live)
    const group = this.#groups.get(batch)
    if (!group || items.length < batch.seal.positions.length) {
      this.#giveUp(batch, items.length)
      return
    }
    batches.restore(group, batch, items)
    this.#resume(batch)
  }

  #resume(batch: OpenBatch): void {
    const group = this.#groups.get(batch)
    if (!group) return
    group.restoring--
    if (group.restoring === 0) this.#options.batches.resume(group)
  }

  #giveUp({ groupId, version, seal }: OpenBatch, found: number): void {
    const { telemetry, fence, batches } = this.#options
    const items = seal.positions.length
    const what = 'items of a sealed batch are missing'
    const detail = { groupId, version, items, found }
    telemetry.problem({ shard: fence.shard, what, error: 'given up', detail })
    batches.settlement.unseal({ groupId, version }, `${found} of ${items} items left`)
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
