/**
 * The parts of a running shard and how they are joined, in this order: the claim of its logs, what holds and delivers
 * items, the reader of the inbox, and what runs in the background.
 */
import { askSubject } from '../domain/verdict.ts'
import { asError } from '../runtime/thrown.ts'
import { Batches } from './batches/batches.ts'
import { DeadLetterWriter } from './batches/dead-letter-write.ts'
import { DeliveryScheduler } from './batches/delivery-scheduler.ts'
import { RemoteAttempts } from './batches/handover.ts'
import { Projector } from './batches/projector.ts'
import { Sealer } from './batches/sealer.ts'
import { Settlement } from './batches/settlement.ts'
import { raiseEpoch } from './claim/epoch.ts'
import { InboxReading } from './claim/inbox-reading.ts'
import { Intake } from './claim/intake.ts'
import { Restoration } from './claim/restoration.ts'
import { proofSubject } from './claim/takeover.ts'
import { type ClaimedLogs, claimLogs } from './claimed-logs.ts'
import { Duplicates } from './held/duplicates.ts'
import { Groups } from './held/groups.ts'
import { LiveItems } from './held/live.ts'
import { PayloadCache } from './held/payload-cache.ts'
import { DeletedBufferReports } from './housekeeping/deleted-buffers.ts'
import { Housekeeping } from './housekeeping/housekeeping.ts'
import type { Journal } from './journal/journal.ts'
import { messageReader } from './message-reader.ts'
import type { ShardEvents, ShardOptions, ShardParts } from './parts.ts'
import type { Fence } from './ports.ts'

/** Claims, folds, proves, checks, and joins the parts. Rejects with FencedError or LostTailError. */
export async function assembleShard(options: ShardOptions, given: ShardEvents): Promise<ShardParts> {
  const logs = await claimLogs(options, given)
  const events = { ...given, onFatal: (error: Error) => logs.watch.fail(error) }
  const acting = joinActing(options, events, logs)
  const intake = joinIntake(options, events, logs, acting)
  const background = startBackground(options, events, logs, acting, intake)
  const reading = new InboxReading({ inbox: options.broker.inbox(options.shard), intake, ...logs, ...events })
  const stopListening = listen(options, events, logs, acting)
  const stopReconnects = options.broker.onReconnect(() => background.housekeeping.reconnected())
  return {
    epoch: logs.claim.epoch,
    state: logs.claim.state,
    journal: logs.journal,
    replay: logs.replay,
    housekeeping: background.housekeeping,
    ...acting,
    begin() {
      reading.begin()
      logs.watch.attend(reading)
    },
    stopReading: () => reading.stop(),
    stop() {
      acting.batches.stop()
      background.stop()
      acting.projector.stop()
      acting.restoration.stop()
      acting.groups.close()
      acting.remoteAttempts.stop()
      stopListening()
      stopReconnects()
      logs.watch.stop()
    },
  }
}

type Held = ReturnType<typeof joinHeld>
type Acting = ReturnType<typeof joinActing>

/** What holds buffered items: their payloads, their groups, the ids of their messages. */
function joinHeld(options: ShardOptions, events: ShardEvents, { claim, journal }: ClaimedLogs) {
  const { shard, broker, clock, limits, telemetry, policies } = options
  const kept = { budget: limits.payloadBudget, keepMs: limits.payloadMs }
  const payloads = new PayloadCache(kept, clock, messageReader({ ...options, journal, ...events }))
  const live = new LiveItems(payloads)
  const groups = new Groups({ policies, clock, onProblem: events.onProblem })
  const onDropped = (dropped: number) => telemetry.dropped({ shard, duplicates: dropped })
  const duplicates = new Duplicates({ broker, journal, state: claim.state, live, onDropped })
  return { payloads, live, groups, duplicates, packs: claim.state.seen.copy() }
}

/** What acts on them: batches, attempts, dead letters, counters. */
function joinActing(options: ShardOptions, events: ShardEvents, logs: ClaimedLogs) {
  const { shard, broker, clock, telemetry, deadLetters, projection, limits } = options
  const { journal, replay } = logs
  const { onFatal, onProblem } = events
  const { state, epoch, identity, origin, snapshot, settled } = logs.claim
  const fence = { shard, epoch, identity }
  const log = broker.journal(shard)
  const raised = raiseEpoch({ fence, snapshot, origin, deadLetters, clock, journal, log, ...events })
  const held = joinHeld(options, events, logs)
  const projector = new Projector({
    projection,
    fence,
    clock,
    raised,
    facts: settled.map(({ commit, record }) => ({ commit, fact: record.fact })),
    reached: journal.last,
    factsAtOnce: limits.factsAtOnce,
    onFenced: onFatal,
    onProblem: (error) => onProblem('delivery counters', error),
  })
  const { scheduler, settlement } = joinDelivery(options, events, held, { fence, journal, projector, raised })
  const remoteAttempts = new RemoteAttempts({
    messages: broker,
    clock,
    shard,
    released: state.released,
    attemptOf: (key) => state.batches.get(key)?.attempt,
  })
  const mayAct = () => !held.groups.paused && (options.holds?.() ?? true)
  const batches = new Batches({
    ...options,
    ...held,
    journal,
    replay,
    scheduler,
    settlement,
    remoteAttempts,
    sealer: new Sealer({ shard, clock, journal, telemetry, payloads: held.payloads }),
    mayAct,
    onFatal,
  })
  const outstanding = [...state.batches.values()]
  const restoration = new Restoration({ fence, clock, outstanding, deadLetters, raised, telemetry, onFatal })
  return { ...held, raised, batches, restoration, projector, remoteAttempts, mayAct }
}

/** How batches go out, and how they end. */
function joinDelivery(
  options: ShardOptions,
  events: ShardEvents,
  held: Held,
  own: { fence: Fence; journal: Journal; projector: Projector; raised: Promise<void> },
) {
  const { deliverer, limits } = options
  const scheduler = new DeliveryScheduler({
    payloads: held.payloads,
    deliverer,
    attemptsPerBuffer: limits.attemptsPerBuffer,
    waitingBodyBudget: limits.payloadBudget / 4,
  })
  const deadLetterWriter = new DeadLetterWriter({
    ...options,
    ...own,
    payloads: held.payloads,
    scheduler,
    onProblem: (error) => events.onProblem('a dead letter cannot be stored', error),
  })
  const settlement = new Settlement({ ...options, ...held, ...own, deadLetterWriter })
  return { scheduler, settlement }
}

function joinIntake(
  options: ShardOptions,
  events: ShardEvents,
  { claim, journal, replay, head, kept }: ClaimedLogs,
  acting: Acting,
): Intake {
  return new Intake({
    ...acting,
    clock: options.clock,
    state: claim.state,
    replay,
    head,
    kept: letGo(kept),
    onGap: (from, to) => {
      // A successor may have purged them: only a commit proves that they are missing.
      const lacks = () =>
        events.onProblem('the inbox lacks messages', new Error(`${from} to ${to - 1} are not there`))
      journal.prove().then(lacks, () => {})
    },
    onReplayed: () => {
      events.onReplayed()
      acting.groups.release()
      acting.restoration.finish({ ...acting, journal }).catch((error: unknown) => {
        if (!events.ended()) events.onFatal(asError(error))
      })
    },
  })
}

/** Each once, in order: what got its place stands nowhere else. */
function* letGo<T>(items: T[]): Generator<T> {
  items.reverse()
  for (let next = items.pop(); next !== undefined; next = items.pop()) yield next
}

/** Housekeeping of the logs, and reports of deleted buffers. */
function startBackground(
  options: ShardOptions,
  events: ShardEvents,
  { claim, archive, journal, replay }: ClaimedLogs,
  acting: Acting,
  intake: Intake,
): { housekeeping: Housekeeping; stop(): void } {
  const { shard, broker, clock, limits, deletedBuffers } = options
  const { onProblem } = events
  const inboxLog = broker.inbox(shard)
  const housekeeping = new Housekeeping(
    {
      ...acting,
      clock,
      limits: limits.housekeeping,
      inboxLog,
      journalLog: broker.journal(shard),
      archive,
      journal,
      state: claim.state,
      replay,
      intake,
      onProblem,
    },
    claim,
  )
  const fence = { shard, epoch: claim.epoch, identity: claim.identity }
  const { raised, groups } = acting
  const reports = new DeletedBufferReports({
    deletedBuffers,
    fence,
    clock,
    raised,
    inboxLog,
    replay,
    groups,
    journal,
    onProblem,
  })
  return {
    housekeeping,
    stop() {
      housekeeping.stop()
      reports.stop()
    },
  }
}

/** To what comes from other nodes. The answer ends it. */
function listen(
  { broker, shard }: ShardOptions,
  events: ShardEvents,
  { journal, replay }: ClaimedLogs,
  { duplicates, mayAct }: Acting,
): () => void {
  const ends = [
    broker.subscribe(askSubject(shard), (bytes, reply) => {
      if (!replay.replaying && !events.ended() && mayAct()) duplicates.answer(bytes, reply, replay.cursor)
    }),
    // Else an owner at rest would learn at its next commit only that it was made to let go.
    broker.subscribe(proofSubject(shard), () => void journal.prove().catch(() => {})),
  ]
  return () => {
    for (const end of ends) end()
  }
}
