/**
 * One shard in the hands of one owner: from the claim to its end (design, section 4). Created anew for every
 * claim; a shard that failed or was fenced is never used again.
 */
import { askSubject } from '../domain/verdict.ts'
import type { Clock, Randomness } from '../runtime/clock.ts'
import { Batches } from './batches.ts'
import type { Broker, LogMessage, Reading } from './broker.ts'
import { Burial } from './burial.ts'
import { Courier } from './courier.ts'
import { Frames } from './frames.ts'
import { Groups } from './groups.ts'
import { Housekeeping, type HousekeepingLimits } from './housekeeping.ts'
import { Intake } from './intake.ts'
import { Journal } from './journal.ts'
import { readKept } from './kept.ts'
import { LiveItems, type OpenGroup } from './live.ts'
import type { DeadLetters, Deliverer, Policies, Projection, ShardTelemetry } from './ports.ts'
import { FencedError } from './ports.ts'
import { Projector } from './projector.ts'
import { Restoration } from './restoration.ts'
import { checkHighWater, claimShard } from './takeover.ts'
import { Twins } from './twins.ts'
import { Wakes } from './wakes.ts'

export interface ShardLimits {
  /** Payload frames kept in memory a shard, bytes; past it they are dropped and read again. */
  readonly payloadBudget: number
  /** Attempts at once a buffer and shard. */
  readonly attemptsPerBuffer: number
  readonly housekeeping: HousekeepingLimits
}

export interface ShardOptions {
  readonly shard: number
  /** UUID of this process's boot. */
  readonly boot: string
  /** Number of this claim among all of this boot. */
  readonly claim: number
  readonly broker: Broker
  readonly clock: Clock
  readonly randomness: Randomness
  readonly policies: Policies
  readonly deliverer: Deliverer
  readonly deadLetters: DeadLetters
  readonly projection: Projection
  readonly telemetry: ShardTelemetry
  readonly limits: ShardLimits
  /** Called once when the shard ended by itself: fenced, or an invariant is broken. */
  readonly onEnd: (error: Error) => void
}

const GAUGES_EVERY_MS = 1_000
const RAISE_RETRY_MS = 500
const POLL_MS = 20

type Parts = Awaited<ReturnType<Shard['assemble']>>

export class Shard {
  readonly #options: ShardOptions
  #parts: Parts | null = null
  #ended = false
  #state: 'claiming' | 'replaying' | 'running' | 'draining' | 'ended' = 'claiming'

  constructor(options: ShardOptions) {
    this.#options = options
  }

  get state(): string {
    return this.#state
  }

  get epoch(): number {
    return this.#parts?.epoch ?? 0
  }

  /** Last committed journal sequence: "the last good one" when the shard fails. */
  get lastSeq(): number {
    return this.#parts?.journal.lastSeq ?? 0
  }

  /** What is buffered of every buffer here. */
  *buffered(): Generator<{ bufferUid: string; items: number; bytes: number }> {
    for (const book of this.#parts?.groups.books() ?? []) {
      yield { bufferUid: book.uid, items: book.items, bytes: book.bytes }
    }
  }

  /** One round of housekeeping now. */
  async housekeep(): Promise<void> {
    await this.#parts?.housekeeping.round()
  }

  /** Claims the shard and runs it; resolves once it reads its inbox. Rejects when the claim fails. */
  async start(): Promise<void> {
    const began = this.#options.clock.monotonic()
    const { telemetry, shard, clock } = this.#options
    const replayed = () => {
      this.#state = 'running'
      const replayMs = clock.monotonic() - began
      telemetry.ownership({ shard, epoch: this.epoch, state: 'running', replayMs })
    }
    const parts = await this.assemble(replayed)
    if (this.#ended) return this.#release(parts)
    this.#parts = parts
    this.#state = 'replaying'
    telemetry.ownership({ shard, epoch: parts.epoch, state: 'replaying' })
    parts.begin()
    this.#gauge()
  }

  /**
   * Lets go in good order: no new seals and attempts, what runs is finished and committed, then a release
   * record. At most `timeoutMs`; what is in flight then is left to the next owner.
   */
  async stop(timeoutMs: number): Promise<void> {
    const parts = this.#parts
    if (!parts || this.#ended) {
      this.#ended = true
      return
    }
    this.#state = 'draining'
    parts.batches.drain()
    await parts.stopReading()
    parts.housekeeping.stop()
    const { clock } = this.#options
    const deadline = clock.monotonic() + timeoutMs
    const busy = () => parts.courier.running > 0 || parts.batches.burying > 0 || !parts.journal.idle
    while (busy() && clock.monotonic() < deadline && !this.#ended) await this.#pause()
    if (!this.#ended) await this.#sayRelease(parts, deadline)
    if (!this.#ended) await parts.projector.flush().catch((error: unknown) => this.#problem('delivery counters', error))
    this.#end('released')
    await parts.journal.close()
  }

  /** Ends at once, as a crash would: nothing is written any more. */
  async abandon(): Promise<void> {
    this.#end('abandoned')
    await this.#parts?.stopReading()
    await this.#parts?.journal.close()
  }

  async #sayRelease(parts: Parts, deadline: number): Promise<void> {
    let said = false
    const inFlight = parts.batches.inFlight(this.#options.clock.now())
    parts.journal.write({ type: 'release', batches: inFlight }, () => {
      said = true
    })
    while (!said && this.#options.clock.monotonic() < deadline && !this.#ended) await this.#pause()
  }

  #pause(): Promise<void> {
    return new Promise((resume) => this.#options.clock.after(POLL_MS, resume))
  }

  #fail(error: Error): void {
    if (this.#ended) return
    const fenced = error instanceof FencedError
    this.#end(fenced ? 'fenced' : 'failed', error)
    void this.#parts?.stopReading()
    void this.#parts?.journal.close()
    this.#options.onEnd(error)
  }

  #end(state: string, error?: Error): void {
    if (this.#ended) return
    this.#ended = true
    this.#state = 'ended'
    const parts = this.#parts
    if (parts) this.#release(parts)
    const { telemetry, shard } = this.#options
    telemetry.ownership({ shard, epoch: this.epoch, state, ...(error && { error: error.message }) })
  }

  #release(parts: Parts): void {
    parts.batches.stop()
    parts.wakes.stop()
    parts.housekeeping.stop()
    parts.projector.stop()
    parts.restoration.stop()
    parts.groups.close()
    parts.stopAnswering()
  }

  #problem(what: string, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    this.#options.telemetry.problem({ shard: this.#options.shard, what, error: text })
  }

  #gauge(): void {
    const parts = this.#parts
    if (this.#ended || !parts) return
    this.#options.telemetry.gauges({
      shard: this.#options.shard,
      epoch: parts.epoch,
      openGroups: parts.groups.size,
      bufferedItems: parts.live.count,
      bufferedBytes: parts.live.payloadBytes,
      residentBytes: parts.frames.residentBytes,
    })
    this.#options.clock.after(GAUGES_EVERY_MS, () => this.#gauge())
  }

  /** Resolves when Postgres knows the epoch; rejects with FencedError when it knows a higher one. */
  async #raise(epoch: number): Promise<void> {
    const { deadLetters, shard, clock } = this.#options
    while (!this.#ended) {
      try {
        return await deadLetters.raiseEpoch({ shard, epoch })
      } catch (error) {
        if (error instanceof FencedError) {
          this.#fail(error)
          throw error
        }
        this.#problem('the epoch cannot be raised in Postgres', error)
        await new Promise<void>((resume) => clock.after(RAISE_RETRY_MS, resume))
      }
    }
    throw new FencedError('the shard ended before its epoch was raised')
  }

  /** Claims, folds, proves, and joins the parts. Rejects with FencedError or LostTailError. */
  async assemble(onReplayed: () => void) {
    const { shard, boot, claim, broker, clock, randomness, limits, telemetry, deadLetters, policies } = this.#options
    const inboxLog = broker.inbox(shard)
    const journalLog = broker.journal(shard)
    const claimed = await claimShard({ broker, shard, clock, boot, claim, stopped: () => this.#ended })
    const { epoch, state } = claimed
    const onFatal = (error: Error) => this.#fail(error)
    let highWater = () => state.highWater
    const journal = new Journal({
      log: journalLog,
      clock,
      boot,
      epoch,
      lastSeq: epoch,
      state,
      highWater: () => highWater(),
      onCommit: (event) => telemetry.commit({ shard, ...event }),
      onLost: onFatal,
    })
    await journal.prove()
    await checkHighWater(inboxLog, shard, state)
    const head = await inboxLog.state()
    const kept = await readKept(journalLog, state)
    const raised = this.#raise(epoch)
    raised.catch(() => {})
    const fence = { shard, epoch }
    const frames = new Frames(limits.payloadBudget, (source, seq) =>
      (source === 'inbox' ? inboxLog : journalLog).get(seq),
    )
    const live = new LiveItems(frames)
    const problem = (what: string) => (error: unknown) => this.#problem(what, error)
    const projector = new Projector({
      projection: this.#options.projection,
      fence,
      clock,
      facts: claimed.facts,
      reached: journal.lastSeq,
      raised,
      onFenced: onFatal,
      onProblem: problem('delivery counters'),
    })
    const onDropped = (duplicates: number) => telemetry.dropped({ shard, duplicates })
    const twins = new Twins({ broker, journal, state, live, onDropped })
    const courier = new Courier({
      frames,
      deliverer: this.#options.deliverer,
      attemptsPerBuffer: limits.attemptsPerBuffer,
      waitingBodyBudget: limits.payloadBudget / 4,
    })
    const onProblem = problem('a dead letter cannot be stored')
    const burial = new Burial({ fence, clock, randomness, frames, courier, deadLetters, projector, raised, onProblem })
    const outstanding = [...state.batches.values()]
    const restoration = new Restoration({ fence, clock, outstanding, deadLetters, raised, telemetry, onFatal })
    const wakes: Wakes<OpenGroup> = new Wakes(clock, (group, at) => batches.step(group, { kind: 'tick', at }))
    const resume = (group: OpenGroup): void => {
      const held = intake.replaying || group.restoring > 0
      const policy = held ? group.book.heldPolicy : group.book.policy
      batches.step(group, { kind: 'policy', at: clock.now(), policy })
    }
    const groups = new Groups({ policies, clock, onPolicy: resume, onProblem: (what, error) => this.#problem(what, error) })
    const batches = new Batches({
      shard,
      fence,
      clock,
      randomness,
      journal,
      frames,
      live,
      twins,
      groups,
      wakes,
      courier,
      burial,
      projector,
      deadLetters,
      telemetry,
      onFatal,
    })
    const intake = new Intake({
      clock,
      state,
      frames,
      live,
      groups,
      twins,
      batches,
      restoration,
      head: head.lastSeq,
      kept: kept.values(),
      onReplayed: () => {
        onReplayed()
        for (const group of [...groups.all()]) if (group.restoring === 0) resume(group)
        restoration.finish({ batches, journal, projector, live, twins, resume }).catch((error: unknown) => {
          if (!this.#ended) onFatal(error instanceof Error ? error : new Error(String(error)))
        })
      },
    })
    highWater = () => intake.highWater
    const journalBytes = (await journalLog.state()).bytes
    const housekeeping = new Housekeeping(
      {
        clock,
        limits: limits.housekeeping,
        inboxLog,
        journalLog,
        journal,
        state,
        intake,
        live,
        twins,
        frames,
        projector,
        onProblem: (what, error) => this.#problem(what, error),
      },
      journalBytes,
    )
    let reading: Reading | null = null
    const stopAnswering = broker.subscribe(askSubject(shard), (bytes, reply) => {
      if (!intake.replaying && !this.#ended) twins.answer(bytes, reply, intake.cursor)
    })
    const take = (messages: LogMessage[]) => {
      if (this.#ended) return
      try {
        intake.take(messages)
      } catch (error) {
        onFatal(error instanceof Error ? error : new Error(String(error)))
      }
    }
    const begin = () => {
      if (head.messages === 0 || head.lastSeq < intake.cursor) intake.reachedEnd(head.lastSeq)
      reading = inboxLog.follow(Math.max(1, intake.cursor), take, problem('reading the inbox'))
    }
    const stopReading = async () => {
      await reading?.stop()
      reading = null
    }
    return { epoch, journal, frames, live, projector, courier, restoration, wakes, groups, batches, housekeeping, begin, stopReading, stopAnswering }
  }
}
