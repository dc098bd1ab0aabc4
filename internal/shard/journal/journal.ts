/**
 * The owner's end of its journal: group commits, exactly one in flight, each conditional on the last sequence
 * that the owner knows (docs/architecture/protocol.md, "Commits"). Exactly one, because a pipeline of predicted
 * sequences does not fence: another claim's record fills the sequence that the next but one expects.
 *
 * Invariant: a record's callback runs after the broker stored its commit and the fold took it, in the order
 * of the writes; once fenced or closed no callback runs any more.
 */

import type { Clock } from '../../runtime/clock.ts'
import { Fifo } from '../../runtime/fifo.ts'
import { sleep } from '../../runtime/sleep.ts'
import { asError } from '../../runtime/thrown.ts'
import type { AppendAnswer, Log, LogState } from '../broker.ts'
import { LostTailError } from '../lost-tail.ts'
import { FencedError } from '../ports.ts'
import { encodeCommit, encodeRecord } from './codec.ts'
import { type CommitName, commitName } from './commit-name.ts'
import { applyCommit } from './fold.ts'
import { checkByClaim, checkOwnCommit, type OwnTail } from './journal-tail.ts'
import {
  type HighWater,
  type JournalRecord,
  type KeepRecord,
  MAX_COMMIT_BYTES,
  MAX_COMMIT_POSITIONS,
  weightOf,
} from './records.ts'
import { Refusals } from './refusals.ts'
import { JournalRoom, type Share } from './room.ts'
import type { FoldState } from './state.ts'

/** One try of an append; then again under the same id. */
const APPEND_TIMEOUT_MS = 2_000
/** Pause after an answer that asks for patience. */
const RETRY_PAUSE_MS = 50
/** What nobody waits for shares the next commit, or has one of its own after so long, ms. */
const PATIENCE_MS = 5
/** A journal that ends before the last own commit may have lost it after so long, ms: a leader that is not up to date soon is. */
const SHORT_MS = 5_000
const NO_BYTES = Buffer.alloc(0)

/** @param seq sequence of the record's commit. @param applied false: the record was void. @param data the commit's bytes. */
export type Committed = (seq: number, applied: boolean, data: Buffer) => void

/** `waits` for room, in the order of the writes. `passes` what waits. */
type Passage = 'waits' | 'passes'

interface Queued {
  /** null: only the commit is wanted. */
  readonly record: JournalRecord | null
  readonly bytes: Buffer
  readonly passage: Passage
  readonly committed: Committed | undefined
  readonly lost?: (error: Error) => void
}

export class JournalClosedError extends Error {
  override readonly name = 'JournalClosedError'
}

export interface JournalOptions {
  readonly shard: number
  readonly log: Log
  readonly clock: Clock
  readonly boot: string
  /** In front of message ids: no other claim or process has it. Behind a loss two claims may have one epoch. */
  readonly writer: string
  /** The sequence of the claim: the first commit expects it. */
  readonly epoch: number
  /** What commits are applied to. */
  readonly state: () => FoldState
  /** The last message of the inbox that the owner has read: no commit names a position above it. */
  readonly highWater: () => HighWater | null
  /** Appends another claim, without expectation, and answers its sequence: it ends this owner, and tells where the journal ends. */
  readonly claimAgain: () => Promise<number>
  /** Round trip of a commit, ms. */
  readonly onCommit: (event: { ms: number; records: number; bytes: number }) => void
  /** A commit is not taken, and tried again; told after 5 s and every 30 s. */
  readonly onRefused: (error: Error) => void
  /** Called once, when this owner lost its shard or the journal broke; nothing is written afterwards. */
  readonly onLost: (error: Error) => void
}

export class Journal {
  readonly #options: JournalOptions
  #queue: Queued[] = []
  #lastSeq: number
  #lastData: Buffer | null = null
  #number = 0
  #flying: Promise<void> | null = null
  #scheduled = false
  /** Something in the queue is waited for, or has waited long enough. */
  #urgent = false
  #cancelPatience: (() => void) | null = null
  #closed = false
  /** The release record is written: it has to stay the last one, for by it the next owner knows that it may claim. */
  #ending = false
  #bytes = 0
  readonly #room = new JournalRoom()
  /** What waits for room, in the order of the writes. */
  readonly #held = new Fifo<Queued>()
  #refusals: Refusals | null = null
  /** Since when it ends before the last own commit, monotonic ms; null: it does not. */
  #shortSince: number | null = null
  #reconnects = 0
  /** Logs that were not seen since the last reconnect: nothing is sent before the journal was, and proofs alone before the inbox was. */
  #unseen: 'both' | 'inbox' | null = null

  constructor(options: JournalOptions) {
    this.#options = options
    this.#lastSeq = options.epoch
  }

  /** Sequence of the last own commit. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  /** The last own commit; without identity until there is one. */
  get last(): CommitName {
    return this.#lastData ? commitName(this.#lastSeq, this.#lastData) : { seq: this.#lastSeq, identity: null }
  }

  /** Bytes of the commits with records that this owner appended. */
  get bytesWritten(): number {
    return this.#bytes
  }

  get idle(): boolean {
    return this.#queue.length === 0 && !this.#flying && !this.holdsBack
  }

  /** Records wait for room. */
  get holdsBack(): boolean {
    return this.#held.size > 0
  }

  /** What is written waits until the log is cut. */
  get isFull(): boolean {
    return this.left('commits') <= 0
  }

  /** The broker may have more room than is known here: see `look`. */
  get mayHaveRoom(): boolean {
    return this.holdsBack || this.#room.isUncertain
  }

  /** Bytes that are left of a share of the log; Infinity: there is no limit. */
  left(share: Share): number {
    return this.#room.left(share)
  }

  /**
   * Asks the broker how full the log is, and goes on with what waits for room. Without a look there is no limit. Rejects when
   * the answer lacks own commits, and so their bytes.
   */
  async look(): Promise<LogState> {
    const { answered } = this.#room
    const lastSeq = this.#lastSeq
    const state = await this.#options.log.state()
    if (state.lastSeq < lastSeq) throw wasBehind(state)
    this.#room.told(state, answered)
    this.#admit()
    return state
  }

  #admit(): void {
    const before = this.#queue.length
    while (this.holdsBack && !this.isFull) this.#take(this.#held.shift()!)
    if (this.#queue.length > before) this.#hurry()
    if (!this.holdsBack) this.#refusals = null
    else {
      this.#refusals ??= new Refusals(this.#options.clock, this.#options.onRefused)
      this.#refusals.again({ kind: 'full' })
    }
  }

  write(record: JournalRecord, committed?: Committed): void {
    this.#enqueue(queuedOf(record, committed))
  }

  /** As `write`, for what nobody waits for: it need not have a commit of its own, but one within 5 ms. */
  writeSoon(record: JournalRecord, committed?: Committed): void {
    this.#enqueue(queuedOf(record, committed), false)
  }

  /** As `write`; resolves with the commit's sequence once it is applied, rejects when the journal is lost or closed first. */
  commit(record: JournalRecord, committed?: Committed): Promise<number> {
    return this.#promised(queuedOf(record, committed))
  }

  /** As `commit`, for what carries kept items forward: it passes what waits for room. The caller looks at what is `left` for it. */
  carry(record: KeepRecord, committed: Committed): Promise<number> {
    return this.#promised({ ...queuedOf(record, committed), passage: 'passes' })
  }

  /**
   * Rejects when the broker does not have the last own commit any more, with LostTailError, or cannot tell yet. An owner that had to
   * claim again to know ends with it, as one does that lost its commit.
   */
  async checkTail(): Promise<void> {
    // Commits go on meanwhile, and the answer may be older than they are.
    const tail = this.#tail
    const { lastSeq } = await this.#options.log.state()
    await this.#checkEnd(lastSeq, tail)
  }

  /** To be called at each reconnect, for what it stops: then `seeAgain`. */
  reconnected(): void {
    this.#reconnects++
    this.#unseen = 'both'
  }

  /**
   * Goes on after the last reconnect, once `checkTail` and `seeInbox` have resolved. Rejects as these do; `seeInbox` may prove. Another
   * reconnect meanwhile needs a call of its own.
   */
  async seeAgain(seeInbox: () => Promise<void>): Promise<void> {
    const reconnects = this.#reconnects
    const goOn = (unseen: 'inbox' | null) => {
      if (reconnects !== this.#reconnects) return
      this.#unseen = unseen
      if (this.#queue.length > 0) this.#hurry()
    }
    await this.checkTail()
    goOn('inbox')
    await seeInbox()
    goOn(null)
  }

  /**
   * A commit with or without others' records: proves that this owner was the last claimant when it began. Rejects with FencedError
   * when it was not. It passes what waits for room.
   */
  async prove(): Promise<void> {
    await this.#promised({ record: null, bytes: NO_BYTES, passage: 'passes', committed: undefined })
  }

  /** Resolves once all that was written until now is committed; rejects as `prove`. */
  async flush(): Promise<void> {
    await this.#promised({ record: null, bytes: NO_BYTES, passage: 'waits', committed: undefined })
  }

  #promised(queued: Queued): Promise<number> {
    return new Promise((resolve, reject) => {
      const committed: Committed = (seq, applied, data) => {
        queued.committed?.(seq, applied, data)
        resolve(seq)
      }
      this.#enqueue({ ...queued, committed, lost: reject })
    })
  }

  #enqueue(queued: Queued, urgent = true): void {
    if (this.#closed || this.#ending) {
      queued.lost?.(new JournalClosedError('the journal is closed'))
      return
    }
    this.#ending = queued.record?.type === 'release'
    if (queued.passage === 'waits' && (this.holdsBack || this.isFull)) {
      this.#held.push(queued)
      return
    }
    this.#take(queued)
    if (urgent) this.#hurry()
    else this.#cancelPatience ??= this.#options.clock.after(PATIENCE_MS, () => this.#hurry())
  }

  #take(queued: Queued): void {
    this.#room.take(queued.bytes.length)
    this.#queue.push(queued)
  }

  #hurry(): void {
    this.#urgent = true
    if (this.#scheduled || this.#flying) return
    this.#scheduled = true
    // After the running task, so that what it writes shares one commit.
    queueMicrotask(() => {
      this.#scheduled = false
      this.#pump()
    })
  }

  /** Nothing more is written; resolves when the commit in flight has its answer or was given up. */
  async close(): Promise<void> {
    this.#refuse(new JournalClosedError('the journal is closed'))
    await this.#flying
  }

  #pump(): void {
    if (this.#flying || this.#closed || !this.#urgent) return
    const taken = this.#next()
    if (taken.length === 0) return
    // What one commit could not hold has waited already.
    this.#urgent = this.#queue.length > 0
    this.#cancelPatience?.()
    this.#cancelPatience = null
    this.#flying = this.#commit(taken)
      .catch((error: unknown) => this.#lose(error, taken))
      .finally(() => {
        this.#flying = null
        this.#pump()
      })
  }

  /**
   * As much of the queue as one commit may hold, with at most one seal of a group (its sequence is the version)
   * and at most one keep (a kept item is named by commit and ordinal).
   */
  #next(): Queued[] {
    if (this.#unseen !== null) {
      const proofs = this.#queue.filter(isProof)
      this.#queue = this.#queue.filter((queued) => !isProof(queued))
      return proofs
    }
    let [size, positions, count] = [0, 0, 0]
    const taken = new Set<string>()
    for (const { record, bytes } of this.#queue) {
      const weight = record ? weightOf(record) : 0
      const isFull = size + bytes.length > MAX_COMMIT_BYTES || positions + weight > MAX_COMMIT_POSITIONS
      if (count > 0 && isFull) break
      const single = record?.type === 'seal' ? record.groupId : record?.type === 'keep' ? record.type : null
      if (single !== null && taken.has(single)) break
      if (single !== null) taken.add(single)
      size += bytes.length
      positions += weight
      count++
    }
    return this.#queue.splice(0, count)
  }

  async #commit(taken: Queued[]): Promise<void> {
    const { clock, boot, writer, epoch, state, onCommit } = this.#options
    const number = ++this.#number
    const seen = this.#options.highWater()
    // Whatever the commit names stands at or below the last mark: whoever claims sees by it when the inbox lost that.
    const highWater = seen && seen.seq > (state().highWater?.seq ?? 0) ? seen : null
    const header = { boot, epoch, at: clock.now(), highWater }
    const began = clock.monotonic()
    const data = encodeCommit(
      header,
      taken.map(({ bytes }) => bytes),
    )
    this.#room.sent()
    const seq = await this.#store(data, `${writer}:${number}`, taken.every(isProof))
    this.#room.stored(taken.reduce((sum, { bytes }) => sum + bytes.length, 0))
    this.#lastSeq = seq
    this.#lastData = data
    this.#shortSince = null
    if (taken.some(({ record }) => record !== null)) this.#bytes += data.length
    onCommit({ ms: clock.monotonic() - began, records: taken.length, bytes: data.length })
    const records = taken.flatMap(({ record }) => record ?? [])
    const applied = applyCommit(state(), { seq, commit: { ...header, records } }).values()
    if (this.#closed)
      throw new JournalClosedError('the journal was closed before its last commit was answered')
    for (const { record, committed } of taken) {
      // In any case: each record has its own answer, also one that nobody asks about.
      const isApplied = record === null || applied.next().value === true
      committed?.(seq, isApplied, data)
    }
  }

  async #store(data: Buffer, msgId: string, proves: boolean): Promise<number> {
    const { log, clock, onRefused } = this.#options
    const refusals = new Refusals(clock, onRefused)
    for (;;) {
      // Before each repetition, too: behind a reconnect the sequence that it expects may be that of another's commit.
      if (this.#isStopped(proves)) {
        await this.#again(refusals, { kind: 'unknown', error: 'the logs were not seen since a reconnect' })
        continue
      }
      const answer = await log.append(data, {
        msgId,
        expectLastSeq: this.#lastSeq,
        timeoutMs: APPEND_TIMEOUT_MS,
      })
      if (answer.kind === 'stored') return answer.seq
      if (answer.kind === 'wrong-sequence') {
        const own = await this.#ownLast(msgId)
        if (own !== undefined) return own
      }
      await this.#again(refusals, answer)
    }
  }

  /** By a reconnect. A proof that waits lets what is in flight pass before it. */
  #isStopped(proves: boolean): boolean {
    if (this.#unseen === 'inbox') return !proves && !this.#queue.some(isProof)
    return this.#unseen !== null
  }

  async #again(refusals: Refusals, answer: AppendAnswer): Promise<void> {
    if (this.#closed)
      throw new JournalClosedError('the journal was closed before its last commit was answered')
    refusals.again(answer)
    await sleep(this.#options.clock, RETRY_PAUSE_MS)
  }

  /**
   * After a refused sequence: our own commit at the end means that an earlier try was stored; anything else behind our
   * last one is another claim. undefined: the broker did not answer, or its last message is the one that was expected, or
   * for a while one before it (a leader that was not up to date): ask again. After that while another claim tells.
   */
  async #ownLast(msgId: string): Promise<number | undefined> {
    const last = await this.#options.log.last().catch(() => null)
    if (last === null) return undefined
    if (last?.msgId === msgId) return last.seq
    const end = last?.seq ?? 0
    const unlessEnded = (error: unknown) => {
      if (this.#closed) throw error
      return false
    }
    const isOwn = await this.#checkEnd(end, this.#tail).then(() => true, unlessEnded)
    if (!isOwn || end === this.#lastSeq) return undefined
    throw new FencedError(`the journal of epoch ${this.#options.epoch} has another claim or writer at ${end}`)
  }

  /** As `checkTail`, of a journal that ends there. Whatever another claim finds: by it this owner is none any more. */
  async #checkEnd(end: number, tail: OwnTail): Promise<void> {
    const { log, claimAgain } = this.#options
    const isShort = end < tail.lastSeq
    if (this.#mayGrow(isShort)) throw wasBehind({ lastSeq: end })
    try {
      if (isShort) await checkByClaim(log, tail, claimAgain)
      await checkOwnCommit(log, tail)
    } catch (error) {
      if (isShort || error instanceof LostTailError) this.#lose(error, [])
      throw error
    }
  }

  /** It ends before the last own commit, and not for long yet. */
  #mayGrow(isShort: boolean): boolean {
    const now = this.#options.clock.monotonic()
    this.#shortSince = isShort ? (this.#shortSince ?? now) : null
    return this.#shortSince !== null && now - this.#shortSince < SHORT_MS
  }

  get #tail(): OwnTail {
    const { shard, boot, epoch } = this.#options
    return { shard, boot, epoch, lastSeq: this.#lastSeq }
  }

  #lose(cause: unknown, taken: Queued[]): void {
    const error = asError(cause)
    const wasClosed = this.#closed
    for (const { lost } of taken) lost?.(error)
    this.#refuse(error)
    if (!wasClosed) this.#options.onLost(error)
  }

  #refuse(error: Error): void {
    this.#closed = true
    this.#cancelPatience?.()
    this.#cancelPatience = null
    for (const { lost } of this.#queue.splice(0)) lost?.(error)
    for (let held = this.#held.shift(); held; held = this.#held.shift()) held.lost?.(error)
  }
}

function queuedOf(record: JournalRecord, committed: Committed | undefined): Queued {
  return { record, bytes: encodeRecord(record), passage: 'waits', committed }
}

function isProof({ record, passage }: Queued): boolean {
  return record === null && passage === 'passes'
}

function wasBehind({ lastSeq }: Pick<LogState, 'lastSeq'>): Error {
  return new Error(`a server that was behind answered that the journal ends at ${lastSeq}`)
}
