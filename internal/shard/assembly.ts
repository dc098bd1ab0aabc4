/** The parts of a running shard and how they are joined: the claim, the fold, and everything that acts on it. */
import { askSubject } from '../domain/verdict.ts'
import { Batches } from './batches.ts'
import type { LogMessage, Reading } from './broker.ts'
import { Burial } from './burial.ts'
import { Courier } from './courier.ts'
import { DeletedBufferReports } from './deleted-buffers.ts'
import { Endings } from './endings.ts'
import { raiseEpoch, rememberLoss } from './epoch.ts'
import type { FoldState } from './fold.ts'
import { frameSource } from './frame-source.ts'
import { Frames } from './frames.ts'
import { Groups } from './groups.ts'
import { AttemptsElsewhere } from './handover.ts'
import { Housekeeping } from './housekeeping.ts'
import { Intake } from './intake.ts'
import { Journal } from './journal.ts'
import { readKept } from './kept.ts'
import { LiveItems, type OpenGroup } from './live.ts'
import { Projector } from './projector.ts'
import type { HighWater } from './records.ts'
import { Restoration } from './restoration.ts'
import { Sealer } from './sealer.ts'
import type { ShardOptions } from './shard.ts'
import {
  type Claim,
  checkHighWater,
  checkInboxHead,
  checkInboxTail,
  checkJournalHead,
  checkJournalTail,
  claimShard,
  LostTailError,
  proofSubject,
} from './takeover.ts'
import { Twins } from './twins.ts'
import { Wakes } from './wakes.ts'

export interface ShardEvents {
  /** The shard cannot go on: it was lost, or an invariant is broken. */
  readonly onFatal: (error: Error) => void
  /** Everything that the inbox held at the claim has its place. */
  readonly onReplayed: () => void
  /** The journal does not take what is written. */
  readonly onRefused: (error: Error) => void
  /** It took something. */
  readonly onCommit: () => void
  /** Something failed that is tried again. */
  readonly onProblem: (what: string, error: unknown) => void
  readonly ended: () => boolean
}

export interface ShardParts {
  readonly epoch: number
  /** Resolves when Postgres knows the epoch; when it rejects, `onFatal` was called. */
  readonly raised: Promise<void>
  readonly state: FoldState
  readonly intake: Intake
  readonly journal: Journal
  readonly live: LiveItems
  readonly frames: Frames
  readonly groups: Groups
  readonly batches: Batches
  readonly restoration: Restoration
  /** Attempts at the last owner. */
  readonly elsewhere: AttemptsElsewhere
  readonly courier: Courier
  readonly projector: Projector
  readonly housekeeping: Housekeeping
  /** Starts to read the inbox and to answer ingresses. */
  begin(): void
  stopReading(): Promise<void>
  /** Nothing acts any more; the journal is closed by the caller. */
  stop(): void
}

/** Claims, folds, proves, checks, and joins the parts. Rejects with FencedError or LostTailError. */
export async function assembleShard(options: ShardOptions, events: ShardEvents): Promise<ShardParts> {
  const { shard, broker } = options
  const [inboxLog, journalLog] = [broker.inbox(shard), broker.journal(shard)]
  const claim = await claimShard({ ...options, stopped: events.ended, onRefused: events.onRefused })
  const reader: { intake: Intake | null } = { intake: null }
  const journal = openJournal(options, claim, events, () => reader.intake)
  await journal.prove()
  checkJournalHead(shard, claim)
  await checkInboxHead(inboxLog, shard, claim.state).catch(unlessFenced(journal))
  await checkInboxTail(inboxLog, shard, claim.state)
  const head = await inboxLog.state()
  const kept = await readKept(journalLog, claim.state).catch(unlessFenced(journal))
  const journalBytes = (await journalLog.state()).bytes

  const acting = joinActing(options, events, claim, journal)
  const { live, frames, groups, batches, twins, restoration, projector, resume } = acting
  const { clock, limits } = options
  const { state } = claim
  const intake: Intake = new Intake({
    ...{ clock, state, frames, live, groups, twins, batches, restoration },
    head,
    kept: kept.values(),
    onGap: (from, to) => {
      const what = 'the inbox lacks messages'
      // Else a successor may have purged them.
      const proven = () => events.onProblem(what, new Error(`${from} to ${to - 1} are not there`))
      journal.prove().then(proven, () => {})
    },
    onReplayed: () => {
      events.onReplayed()
      groups.release()
      restoration.finish({ batches, journal, projector, live, twins, resume }).catch((error: unknown) => {
        if (!events.ended()) events.onFatal(asError(error))
      })
    },
  })
  reader.intake = intake
  acting.replaying = () => intake.replaying
  const housekeeping = new Housekeeping(
    {
      ...{ clock, inboxLog, journalLog, journal, state, intake, live, twins, frames, projector },
      limits: limits.housekeeping,
      onProblem: events.onProblem,
    },
    journalBytes,
  )
  const { deletedBuffers } = options
  const reports = new DeletedBufferReports({
    ...{ deletedBuffers, clock, inboxLog, intake, groups, journal, onProblem: events.onProblem },
    ...{ fence: { shard, epoch: claim.epoch }, raised: acting.raised },
  })
  let reading: Reading | null = null
  const stopAnswering = broker.subscribe(askSubject(shard), (bytes, reply) => {
    if (!intake.replaying && !events.ended()) twins.answer(bytes, reply, intake.cursor)
  })
  // Else an owner at rest would learn at its next commit only that it was made to let go.
  const stopProving = broker.subscribe(proofSubject(shard), () => void journal.prove().catch(() => {}))
  const watch = watchLogs(options, events, journal, state, () => intake.highWater)
  const take = (messages: LogMessage[]): void => {
    if (events.ended()) return
    try {
      intake.take(messages)
    } catch (error) {
      events.onFatal(asError(error))
    }
  }
  return {
    ...{
      epoch: claim.epoch,
      raised: acting.raised,
      state,
      intake,
      journal,
      live,
      frames,
      groups,
      batches,
      restoration,
      projector,
      housekeeping,
    },
    elsewhere: acting.elsewhere,
    courier: acting.courier,
    begin() {
      if (head.messages === 0 || head.lastSeq < intake.cursor) intake.reachedEnd(head.lastSeq)
      if (events.ended()) return
      reading = inboxLog.follow(Math.max(1, intake.cursor), take, (error) =>
        events.onProblem('reading the inbox', error),
      )
    },
    async stopReading() {
      await reading?.stop()
      reading = null
    },
    stop() {
      batches.stop()
      acting.wakes.stop()
      housekeeping.stop()
      reports.stop()
      projector.stop()
      restoration.stop()
      groups.close()
      acting.elsewhere.stop()
      stopAnswering()
      stopProving()
      watch()
    },
  }
}

/** After every reconnect the broker must still have what this owner saw and wrote (design, section 4). */
function watchLogs(
  { broker, shard, deadLetters, clock }: ShardOptions,
  events: ShardEvents,
  journal: Journal,
  state: FoldState,
  seen: () => HighWater | null,
): () => void {
  const check = async () => {
    try {
      await checkJournalTail(broker.journal(shard), shard, journal.lastSeq)
      await checkHighWater(broker.inbox(shard), shard, seen())
      await checkInboxHead(broker.inbox(shard), shard, state).catch(unlessFenced(journal))
    } catch (error) {
      if (events.ended()) return
      if (error instanceof LostTailError) {
        events.onFatal(error)
        // Known to this owner alone: not all that it saw is written down.
        await rememberLoss(deadLetters, shard, clock)
      } else events.onProblem('the logs cannot be checked', error)
    }
  }
  return broker.onReconnect(() => void check())
}

function openJournal(
  options: ShardOptions,
  claim: Claim,
  events: ShardEvents,
  reader: () => Intake | null,
): Journal {
  const { broker, shard, clock, boot, telemetry } = options
  return new Journal({
    log: broker.journal(shard),
    ...{ clock, boot, epoch: claim.epoch, state: claim.state },
    lastSeq: claim.epoch,
    highWater: () => reader()?.highWater ?? claim.state.highWater,
    onCommit: (event) => {
      events.onCommit()
      telemetry.commit({ shard, ...event })
    },
    onRefused: events.onRefused,
    onLost: events.onFatal,
  })
}

/** What acts on buffered items: groups, batches, attempts, dead letters, counters. */
function joinActing(options: ShardOptions, events: ShardEvents, claim: Claim, journal: Journal) {
  const { shard, broker, clock, randomness, limits, telemetry, deadLetters, policies } = options
  const { state, epoch, origin } = claim
  const fence = { shard, epoch }
  const { projection } = options
  const raised = raiseEpoch({ fence, origin, deadLetters, projection, clock, journal, ...events })
  const keeping = { budget: limits.payloadBudget, keepMs: limits.payloadMs }
  const frames = new Frames(keeping, clock, frameSource({ broker, shard, clock, ...events }))
  const live = new LiveItems(frames)
  const onDropped = (duplicates: number) => telemetry.dropped({ shard, duplicates })
  const twins = new Twins({ broker, journal, state, live, onDropped })
  const projector = new Projector({
    ...{ projection, fence, clock, raised, facts: claim.facts, reached: journal.lastSeq },
    onFenced: events.onFatal,
    onProblem: (error) => events.onProblem('delivery counters', error),
  })
  const courier = new Courier({
    ...{ frames, deliverer: options.deliverer, attemptsPerBuffer: limits.attemptsPerBuffer },
    waitingBodyBudget: limits.payloadBudget / 4,
  })
  const burial = new Burial({
    ...{ fence, clock, randomness, frames, courier, deadLetters, projector, raised },
    onProblem: (error) => events.onProblem('a dead letter cannot be stored', error),
  })
  const outstanding = [...state.batches.values()]
  const { onFatal } = events
  const restoration = new Restoration({ fence, clock, outstanding, deadLetters, raised, telemetry, onFatal })
  const wakes: Wakes<OpenGroup> = new Wakes(clock, (group, at) => batches.step(group, { kind: 'tick', at }))
  const acting = { replaying: () => true }
  /** The group follows its buffer again, held while it may not act. */
  const resume = (group: OpenGroup): void => {
    for (const item of groups.beginAnew(group)) batches.step(group, { kind: 'item', at: clock.now(), item })
    const held = acting.replaying() || group.restoring > 0 || groups.paused
    const policy = held ? group.book.heldPolicy : group.book.policy
    batches.step(group, { kind: 'policy', at: clock.now(), policy })
  }
  const groups: Groups = new Groups({
    ...{ policies, clock, onProblem: events.onProblem },
    onPolicy: resume,
  })
  const attemptOf = (key: string) => state.batches.get(key)?.attempt
  const { released } = state
  const elsewhere = new AttemptsElsewhere({ messages: broker, clock, shard, released, attemptOf })
  const sealer = new Sealer({ shard, clock, journal, frames, telemetry })
  const endings = new Endings({
    fence,
    clock,
    journal,
    live,
    twins,
    burial,
    projector,
    deadLetters,
    telemetry,
  })
  const batches: Batches = new Batches({
    ...{ shard, clock, randomness, journal, groups, wakes, sealer, courier, endings, elsewhere },
    ...{ telemetry, onFatal, mayAct: () => !groups.paused && (options.holds?.() ?? true) },
  })
  return Object.assign(acting, {
    raised,
    frames,
    live,
    twins,
    projector,
    courier,
    restoration,
    wakes,
    groups,
    batches,
    elsewhere,
    resume,
  })
}

/** What a successor carried forward or purged is over: only after another commit it is a loss. */
function unlessFenced(journal: Journal): (error: unknown) => Promise<never> {
  return async (error) => {
    await journal.prove()
    throw error
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
