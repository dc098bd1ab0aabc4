/** Everything outside the owners: the broker's streams, Postgres, the destination. Every step on it is atomic. */
import { createHash, type Hash } from 'node:crypto'
import type { BufferRecord } from '../../../internal/domain/model.ts'
import { decodePack } from '../../../internal/domain/pack.ts'
import { DROP_MEMORY_MS } from '../../../internal/domain/verdict.ts'
import type { AppendAnswer } from '../../../internal/shard/broker.ts'
import type { BatchName } from '../../../internal/shard/journal/batch-name.ts'
import { batchKey } from '../../../internal/shard/journal/batch-name.ts'
import { decodeCommit } from '../../../internal/shard/journal/codec.ts'
import { type CommitName, commitName, NO_COMMIT } from '../../../internal/shard/journal/commit-name.ts'
import type { DeadBatch, DeliveryFact, Fence } from '../../../internal/shard/ports.ts'
import { ArchiveStream } from './archive.ts'
import type { Events } from './events.ts'
import { Items } from './items.ts'
import { AttemptJudge } from './judges/attempts.ts'
import { ClaimJudge } from './judges/claims.ts'
import { DuplicateJudge } from './judges/duplicates.ts'
import { FlushJudge } from './judges/flushes.ts'
import { LossJudge, type Survivor } from './judges/losses.ts'
import { SealJudge } from './judges/seals.ts'
import { SettlementJudge } from './judges/settlements.ts'
import { VerdictJudge } from './judges/verdicts.ts'
import type { Owner } from './owner.ts'
import { Stored } from './stored.ts'
import { FIRST_SEQ, type Lost, Stream } from './streams.ts'
import { Truth } from './truth.ts'

/**
 * What Postgres must guarantee; left out, the checker must notice. `postgres-lock`: the epoch is looked at before the
 * row is written, but not locked.
 */
export const RULES = ['postgres-fence', 'postgres-lock', 'tombstone'] as const
export type Rule = (typeof RULES)[number]

/** Earlier states of the logs that servers may have. */
const EARLIER = 8
/** The servers sync each log so often at its own times where they do not sync each message, ms. */
export const SYNCED_MS = 300
/** Of an archive beside a limited journal: three states of the largest kind. */
const ARCHIVE_BYTES = 150_000
/** What the broker stores beside the data of a commit, bytes. */
const MESSAGE_BYTES = 200

type Hearer = (data: Uint8Array, reply?: string) => void

/** The streams as a server knew them some time ago. */
export interface Earlier {
  readonly inbox: Stream
  readonly journal: Stream
  readonly archive: ArchiveStream
}

export interface Sent {
  key: string
  body: string
  delivered: boolean
  /** Sent by the owner of the last claim. */
  current: boolean
  items: string[]
}

export interface WorldOptions {
  readonly leftOut?: Rule
  /** `max_bytes` of the journal; absent: it has none. */
  readonly journalBytes?: number
  readonly clocksStep?: boolean
  readonly restores?: boolean
  /** Purges may come late once more. */
  readonly repeatsPurges?: boolean
  /** The servers answer before they sync. */
  readonly syncsLater?: boolean
}

export class World {
  readonly events: Events
  readonly inbox: Stream
  readonly journal: Stream
  readonly archive: ArchiveStream
  /** The journal has a limit. */
  readonly limited: boolean
  readonly sent: Sent[] = []
  readonly rows = new Map<string, DeadBatch>()
  readonly deletedRows = new Map<string, DeadBatch>()
  readonly tombstones = new Set<string>()
  readonly wrong: string[] = []
  readonly facts: DeliveryFact[] = []
  /** What Postgres knows of the journal. */
  claim = NO_COMMIT
  counted = NO_COMMIT
  /** Buffers as users configured them last, by uid. */
  readonly records = new Map<string, BufferRecord>()
  readonly owners: (Owner & Survivor)[] = []
  readonly items = new Items()
  readonly truth = new Truth(this.items, this.wrong)
  readonly claims = new ClaimJudge(this.truth, this.wrong)
  readonly attempts: AttemptJudge
  readonly flushes: FlushJudge
  readonly verdicts: VerdictJudge
  readonly settlements: SettlementJudge
  readonly losses: LossJudge
  faults = true
  /** Until then no server of the broker runs, virtual ms. */
  downUntil = 0
  powerCuts = 0
  failing = 0.3

  /** Newest last. */
  #earlier: Earlier[] = []
  readonly #stored = new Stored()
  readonly #leftOut: Rule | undefined
  readonly #subscribers = new Map<string, Set<Hearer>>()
  readonly #history: Hash = createHash('sha256')

  /** Clocks of owners are ahead now and then. */
  readonly clocksStep: boolean
  /** Postgres comes back as an older copy once. */
  readonly restores: boolean
  readonly repeatsPurges: boolean
  readonly syncsLater: boolean

  constructor(events: Events, options: WorldOptions = {}) {
    const { leftOut, journalBytes, clocksStep = false, restores = false } = options
    const { repeatsPurges = false, syncsLater = false } = options
    this.events = events
    this.clocksStep = clocksStep
    this.restores = restores
    this.repeatsPurges = repeatsPurges
    this.syncsLater = syncsLater
    this.#leftOut = leftOut
    this.limited = journalBytes !== undefined
    const sizeOf = (data: Uint8Array) => data.length + MESSAGE_BYTES
    this.inbox = new Stream({ windowMs: 30_000, syncsLater })
    const limit = journalBytes === undefined ? {} : { maxBytes: journalBytes }
    this.journal = new Stream({ windowMs: 120_000, sizeOf, syncsLater, ...limit })
    const archiveLimit = this.limited ? { maxBytes: ARCHIVE_BYTES } : {}
    this.archive = new ArchiveStream({ windowMs: 120_000, sizeOf, syncsLater, ...archiveLimit })
    const logs = [this.inbox, this.journal, this.archive]
    if (syncsLater) for (const log of logs) this.#sync(log, events.between(1, SYNCED_MS))
    const { items, truth, wrong } = this
    const now = () => events.now
    const rowOf = (batch: string) => this.rows.get(batch) ?? this.deletedRows.get(batch)
    // Its tombstone goes with its `dead` record, and a power cut may take that: then nothing tells of a deleted row.
    const isDead = (batch: string) =>
      this.rows.has(batch) || (this.deletedRows.has(batch) && !this.losses.lost.journal)
    this.attempts = new AttemptJudge(truth, wrong, now, isDead)
    this.flushes = new FlushJudge(wrong)
    const dropMemoryMs = clocksStep ? 0 : DROP_MEMORY_MS
    this.verdicts = new VerdictJudge(items, truth, wrong, { now, dropMemoryMs })
    this.settlements = new SettlementJudge({
      items,
      wrong,
      attempts: this.attempts,
      clocksStep,
      rowOf,
      recordOf: (uid) => this.records.get(uid),
    })
    const seals = new SealJudge(truth, wrong, (epoch) =>
      this.owners.findLast((owner) => owner.epoch === epoch),
    )
    this.losses = new LossJudge(truth, wrong)
    const duplicates = new DuplicateJudge(items, wrong, this.limited)
    truth.judgedBy(duplicates, seals, this.settlements, this.attempts)
  }

  /** Servers that are cut off later know what is stored now. */
  remember(): void {
    const { inbox, journal, archive } = this
    this.#earlier.push({ inbox: inbox.view(), journal: journal.view(), archive: archive.view() })
    if (this.#earlier.length > EARLIER) this.#earlier.shift()
  }

  /** What a server knows that was cut off from its peers some time ago. */
  earlier(): Earlier {
    const at = this.events.between(0, this.#earlier.length - 1)
    return this.#earlier[at]!
  }

  holds(rule: Rule): boolean {
    return this.#leftOut !== rule
  }

  /** Of everything that was written, sent and stored as dead letters, with its time; to be asked for once. */
  historyHash(): string {
    return this.#history.digest('hex')
  }

  #note(what: string, bytes: Uint8Array): void {
    this.#history.update(`${this.events.now} ${what} `).update(bytes)
  }

  send(subject: string, data: Uint8Array, reply?: string): void {
    const bytes = Buffer.from(data)
    this.events.after(this.events.between(0, 6), () => {
      for (const hear of this.#subscribers.get(subject) ?? []) hear(bytes, reply)
    })
  }

  subscribe(subject: string, hear: Hearer): () => void {
    const hearers = this.#subscribers.get(subject) ?? new Set()
    this.#subscribers.set(subject, hearers.add(hear))
    return () => {
      hearers.delete(hear)
      if (hearers.size === 0) this.#subscribers.delete(subject)
    }
  }

  appendJournal(data: Uint8Array, msgId: string, expectLastSeq?: number): AppendAnswer {
    const answer = this.journal.append(this.events.now, data, msgId, expectLastSeq)
    if (answer.kind === 'full') this.wrong.push('the journal has no room for a commit')
    if (answer.kind !== 'stored' || answer.duplicate) return answer
    this.#note('commit', data)
    const { seq } = answer
    const commit = decodeCommit(data)
    const at = this.events.now
    const before = this.wrong.length
    this.truth.take(seq, at, commit)
    this.#stored.add('journal', seq, () => this.truth.take(seq, at, commit))
    const { owners, wrong } = this
    if (owners.some(({ boot, misled }) => misled && boot === commit.boot)) {
      const fence = wrong.slice(before).filter((what) => what.includes('behind the claim'))
      wrong.splice(before, wrong.length, ...fence)
    }
    return answer
  }

  /** Duplicate or not, its items stand where the first append put them. */
  appendInbox(data: Uint8Array, msgId: string): AppendAnswer {
    const answer = this.inbox.append(this.events.now, data, msgId)
    if (answer.kind !== 'stored' || answer.duplicate) return answer
    const explicit: number[] = []
    const { seq } = answer
    const at = this.events.now
    this.losses.stored(seq, msgId)
    const { packId, replySubject } = decodePack(data, (view, index) => {
      const store = (committed: number) => {
        const item = this.items.store(seq, index, at, view, committed)
        item.end = this.truth.droppedAt(item)
      }
      store(this.journal.lastSeq)
      this.#stored.add('inbox', seq, store)
      if (view.explicit) explicit.push(index)
    })
    if (replySubject !== null && explicit.length > 0) this.verdicts.awaited(packId, answer.seq, explicit)
    return answer
  }

  #sync(log: Stream | ArchiveStream, afterMs: number): void {
    this.events.after(afterMs, () => {
      log.sync()
      this.#sync(log, SYNCED_MS)
    })
  }

  /** All servers lose power, and are back after `downMs` with what is on their disks. @returns what each log lost. */
  cutPower(downMs: number): { inbox: Lost; journal: Lost } {
    const { inbox, journal, truth, events } = this
    const ended = { inbox: inbox.lastSeq, journal: journal.lastSeq }
    const lost = { inbox: inbox.cutPower(events.random), journal: journal.cutPower(events.random) }
    this.archive.cutPower(events.random)
    this.downUntil = events.now + downMs
    this.powerCuts++
    this.#earlier = []
    this.remember()
    this.verdicts.lost(lost.inbox.from)
    if (inbox.lastSeq < ended.inbox || journal.lastSeq < ended.journal) {
      this.#stored.lose({ inbox: lost.inbox.from, journal: lost.journal.from })
      // It was judged when it happened.
      const judged = this.wrong.length
      this.items.forget()
      truth.forget()
      this.#stored.tellAgain(FIRST_SEQ - 1)
      this.wrong.length = judged
    }
    const survivors = this.owners.filter(({ gone }) => !gone)
    this.losses.cut(lost, ended, this, survivors)
    return lost
  }

  deliver(key: string, body: Uint8Array, epoch: number): number {
    this.#note(key, body)
    const text = Buffer.from(body).toString()
    const luck = this.events.random()
    const status = luck < this.failing ? (luck < this.failing / 8 ? 400 : 500) : 200
    const items = (JSON.parse(text).items as { payload: { id: string } }[]).map((item) => item.payload.id)
    this.sent.push({ key, body: text, delivered: status === 200, current: epoch === this.truth.epoch, items })
    return status
  }

  raise({ epoch, identity = null }: Fence): 'fenced' | 'raised' {
    if (epoch < this.claim.seq) return 'fenced'
    this.claim = { seq: epoch, identity }
    return 'raised'
  }

  /** false: another claim is stored by now. */
  replaceEpoch({ epoch, identity = null }: Fence, known: CommitName): boolean {
    const { claim } = this
    if (claim.seq !== known.seq || claim.identity !== known.identity) return false
    this.claim = { seq: epoch, identity }
    this.#judgeName('claim', this.claim)
    return true
  }

  /** Only what the journal had there may be known to Postgres. */
  #judgeName(what: string, { seq, identity }: CommitName): void {
    const message = this.journal.get(seq)
    // Whoever does not know yet that its commit is lost counts it.
    if (message && !this.losses.lost.journal && commitName(seq, message.data).identity !== identity)
      this.wrong.push(`Postgres knows another ${what} at ${seq} than the journal has`)
  }

  writeDeadLetter(fence: Fence, batch: DeadBatch): 'fenced' | 'stored' | 'known' {
    if (this.holds('postgres-lock') && this.fences(fence)) return 'fenced'
    this.#note('writeDeadLetter', batch.body)
    const name = batchKey(batch)
    if (this.tombstones.has(name) || this.rows.has(name)) return 'known'
    if (this.deletedRows.has(name) && !this.losses.lost.journal) this.wrong.push(`second row ${name}`)
    this.rows.set(name, batch)
    // Some users look at their dead letters all the time.
    if (this.faults && this.events.random() < 0.3)
      this.events.after(this.events.between(0, 12), () => this.deleteRow(name))
    return 'stored'
  }

  known(fence: Fence, names: BatchName[]): BatchName[] | 'fenced' {
    if (this.fences(fence)) return 'fenced'
    return names.filter((name) => this.rows.has(batchKey(name)) || this.tombstones.has(batchKey(name)))
  }

  project(fence: Fence, position: CommitName, facts: DeliveryFact[]): 'fenced' | 'done' {
    if (this.fences(fence)) return 'fenced'
    if (position.seq <= this.counted.seq) return 'done'
    this.counted = position
    this.#judgeName('counted commit', position)
    this.facts.push(...facts)
    return 'done'
  }

  /** A higher epoch is stored. */
  fences({ epoch }: Fence): boolean {
    return this.holds('postgres-fence') && epoch < this.claim.seq
  }

  /** A user deletes a dead letter. */
  deleteRow(name: string): void {
    const row = this.rows.get(name)
    if (!row) return
    this.rows.delete(name)
    this.deletedRows.set(name, row)
    if (this.holds('tombstone')) this.tombstones.add(name)
  }
}
