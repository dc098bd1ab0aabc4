/** What an owner leaves in both logs of shard 0 that has much on its hands, written as it would have written it. */
import { randomUUID } from 'node:crypto'
import { groupToken } from '../../internal/domain/group.ts'
import { decodePack, encodePack } from '../../internal/domain/pack.ts'
import type { Broker } from '../../internal/shard/broker.ts'
import { encodeCommit, encodeRecord } from '../../internal/shard/journal/codec.ts'
import type { JournalRecord, KeptItem, Position } from '../../internal/shard/journal/records.ts'
import { markerOf } from '../load/marker.ts'
import { PackWriter } from '../million/packs.ts'

const APPEND_MS = 10_000
/** Items of a keep, and kept items of one message of the inbox. */
const KEEP = 500
/** Open batches of a commit. */
const SEALS = 100
/** When attempts of open batches may begin: after all that is measured. */
const DAY_MS = 86_400_000
/** Of a payload, bytes. What is over is smaller than what is live, so that nothing is copied into the journal meanwhile. */
const SIZE = { live: 150, over: 60 }
/** Items of a pack, in the order of their indexes: those that wait in open batches, then those that are over. */
const PACK = { sealed: 20, over: 30 }

export interface KeptGroup {
  readonly bufferUid: string
  readonly groupKey: string
}

export interface Left {
  readonly kept: { readonly items: number; readonly groupOf: (n: number) => KeptGroup }
  readonly open: { readonly batches: number; readonly items: number; readonly bufferUid: string }
  /** Items above the horizon that are over. */
  readonly finished: number
}

/** Writes all of it behind what the logs hold, and lets go of the shard. The shard has no owner meanwhile. */
export async function leave(broker: Broker, left: Left): Promise<void> {
  const journal = new JournalWriter(broker)
  const packs = new PackWriter(broker)
  await journal.claim()
  const kept = await keep(broker, packs, journal, left.kept)
  await journal.append({ type: 'horizon', seq: kept + 1 })
  const { sealed, over } = await fill(packs, kept + 1, left)
  await settle(journal, over)
  await seal(journal, sealed, left.open)
  const { lastSeq } = await broker.inbox(0).state()
  await journal.append({ type: 'seen', upTo: lastSeq, writers: [] }, { type: 'release', batches: [] })
}

class JournalWriter {
  readonly #broker: Broker
  readonly #boot = randomUUID()
  #epoch = 0

  constructor(broker: Broker) {
    this.#broker = broker
  }

  async claim(): Promise<void> {
    this.#epoch = await this.append({ type: 'epoch' })
  }

  /** Answers its sequence. */
  async append(...records: readonly JournalRecord[]): Promise<number> {
    const header = { boot: this.#boot, epoch: this.#epoch, at: Date.now(), highWater: null }
    const data = encodeCommit(header, records.map(encodeRecord))
    const answer = await this.#broker.journal(0).append(data, { msgId: randomUUID(), timeoutMs: APPEND_MS })
    if (answer.kind !== 'stored') throw new Error(`a commit was not stored: ${answer.kind}`)
    return answer.seq
  }
}

/** Each keep holds the items of one message of the inbox, which has none any more. Answers the sequence of the last one. */
async function keep(
  broker: Broker,
  packs: PackWriter,
  journal: JournalWriter,
  { items, groupOf }: Left['kept'],
): Promise<number> {
  let seq = (await broker.inbox(0).state()).lastSeq
  for (let from = 0; from < items; from += KEEP) {
    await packs.write([])
    seq++
    const groups = Array.from({ length: Math.min(KEEP, items - from) }, (_, n) => groupOf(from + n))
    await journal.append({ type: 'keep', items: keptItems(seq, from, groups) })
  }
  return seq
}

function keptItems(seq: number, from: number, groups: readonly KeptGroup[]): KeptItem[] {
  const now = Date.now()
  const pack = encodePack(
    Buffer.alloc(12),
    null,
    groups.map(({ bufferUid, groupKey }, n) => {
      const head = `{"id":"${markerOf(from + n)}","pad":"`
      return {
        itemId: randomUUID(),
        bufferUid,
        groupKey,
        groupToken: groupToken(bufferUid, groupKey),
        messageId: `kept-${from + n}`,
        explicit: true,
        credits: 1,
        receivedAt: now,
        payload: Buffer.from(`${head}${'x'.repeat(SIZE.live - head.length - 2)}"}`),
      }
    }),
  )
  const kept: KeptItem[] = []
  decodePack(pack, ({ offset, end }, index) => {
    kept.push({ position: { seq, index }, at: now, item: pack.subarray(offset, end) })
  })
  return kept
}

/** Packs from `seq` on, until all that is sealed and all that is over stands in them. Answers their positions. */
async function fill(
  packs: PackWriter,
  seq: number,
  { open, finished }: Left,
): Promise<{ sealed: Position[]; over: Position[] }> {
  const [sealed, over]: [Position[], Position[]] = [[], []]
  const sealedItems = open.batches * open.items
  const { bufferUid } = open
  for (let at = seq; sealed.length < sealedItems || over.length < finished; at++) {
    const waiting = Math.min(PACK.sealed, sealedItems - sealed.length)
    const past = Math.min(PACK.over, finished - over.length)
    const groupOf = (n: number) => `open-${Math.floor((sealed.length + n) / open.items)}`
    await packs.write([
      ...Array.from({ length: waiting }, (_, n) => ({ bufferUid, groupKey: groupOf(n), size: SIZE.live })),
      ...Array.from({ length: past }, () => ({ bufferUid, groupKey: 'over', size: SIZE.over })),
    ])
    for (let index = 0; index < waiting; index++) sealed.push({ seq: at, index })
    for (let index = 0; index < past; index++) over.push({ seq: at, index: waiting + index })
  }
  return { sealed, over }
}

/** In records of a thousand items: as many as a batch may have, and a commit. */
async function settle(journal: JournalWriter, over: readonly Position[]): Promise<void> {
  for (let from = 0; from < over.length; from += 1_000)
    await journal.append({ type: 'discard', batch: null, positions: over.slice(from, from + 1_000) })
}

async function seal(
  journal: JournalWriter,
  sealed: readonly Position[],
  { batches, items, bufferUid }: Left['open'],
): Promise<void> {
  for (let from = 0; from < batches; from += SEALS) {
    const numbers = Array.from({ length: Math.min(SEALS, batches - from) }, (_, n) => from + n)
    const ids = numbers.map((n) => groupToken(bufferUid, `open-${n}`))
    const seals = numbers.map((n, at): JournalRecord => {
      const positions = sealed.slice(n * items, (n + 1) * items)
      return sealRecord(ids[at]!, bufferUid, positions)
    })
    const version = await journal.append(...seals)
    const nextAt = Date.now() + DAY_MS
    const attempts = ids.map(
      (groupId) => ({ type: 'attempt', groupId, version, attempt: 2, nextAt }) as const,
    )
    await journal.append(...attempts)
  }
}

/** Its body is never built while anything is measured, so its hashes are those of nothing. */
function sealRecord(groupId: string, bufferUid: string, positions: readonly Position[]): JournalRecord {
  const now = Date.now()
  return {
    type: 'seal',
    groupId,
    bufferUid,
    segment: 0,
    reason: 'items',
    firstItemAt: now,
    lastActivityAt: now,
    positions,
    itemsHash: new Uint8Array(16),
    bodySha256: new Uint8Array(32),
    serializer: 1,
  }
}
