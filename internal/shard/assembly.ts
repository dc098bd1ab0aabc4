/**
 * The parts of a running shard and how they are joined, in this order: the claim of its logs, what holds and delivers
 * items, the reader of the inbox, and what runs in the background.
 */
import { askSubject } from '../domain/verdict.ts'
import { withDeadline } from '../runtime/deadline.ts'
import { asError } from '../runtime/thrown.ts'
import { Batches } from './batches/batches.ts'
import { RemoteAttempts } from './batches/handover.ts'
import { Projector } from './batches/projector.ts'
import { raiseEpoch } from './claim/epoch.ts'
import { InboxReading } from './claim/inbox-reading.ts'
import { Intake } from './claim/intake.ts'
import { Restoration } from './claim/restoration.ts'
import { type Claim, proofSubject } from './claim/takeover.ts'
import { type ClaimedLogs, claimLogs } from './claimed-logs.ts'
import { Duplicates } from './held/duplicates.ts'
import { Groups } from './held/groups.ts'
import { LiveItems } from './held/live.ts'
import type { NotedItem } from './held/noted-items.ts'
import { PayloadCache } from './held/payload-cache.ts'
import { DeletedBufferReports } from './housekeeping/deleted-buffers.ts'
import { Housekeeping } from './housekeeping/housekeeping.ts'
import { messageReader } from './message-reader.ts'
import type { ShardEvents, ShardOptions } from './options.ts'
import type { ShardParts } from './parts.ts'

/** So long a claim waits for Postgres; without it the groups go on that need nothing of it, ms. */
const EPOCH_MS = 500

/** Claims, folds, proves, checks, and joins the parts. Rejects with FencedError or LostTailError. */
export async function assembleShard(options: ShardOptions, events: ShardEvents): Promise<ShardParts> {
  const logs = await claimLogs(options, events)
  const acting = joinActing(ownerOf(options, events, logs), logs.claim)
  const intake = joinIntake(acting, logs.kept)
  const limits = options.limits.housekeeping
  const housekeeping = new Housekeeping({ ...acting, limits, intake }, logs.claim)
  const reports = new DeletedBufferReports(acting)
  const reading = new InboxReading({ ...acting, inbox: acting.inboxLog, intake })
  const stopListening = listen(acting)
  const stopReconnects = options.broker.onReconnect(() => housekeeping.reconnected())
  // Sealed before Postgres told whether the journal lost commits, a batch could take a version that is in use.
  await withDeadline(options.clock, EPOCH_MS, acting.raised).catch(() => {})
  return {
    ...acting,
    epoch: acting.fence.epoch,
    housekeeping,
    begin() {
      reading.begin()
      logs.watch.attend(reading)
    },
    stopReading: () => reading.stop(),
    stop() {
      acting.batches.stop()
      housekeeping.stop()
      reports.stop()
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

type Owner = ReturnType<typeof ownerOf>
type Acting = ReturnType<typeof joinActing>

/** What all parts are made of: each takes of it what it declares. */
function ownerOf(options: ShardOptions, events: ShardEvents, logs: ClaimedLogs) {
  const { shard, broker } = options
  const { claim, watch } = logs
  return {
    ...options,
    ...events,
    onFatal: (error: Error) => watch.fail(error),
    fence: { shard, epoch: claim.epoch, identity: claim.identity },
    inboxLog: broker.inbox(shard),
    journalLog: broker.journal(shard),
    state: claim.state,
    archive: logs.archive,
    journal: logs.journal,
    replay: logs.replay,
    head: logs.head,
  }
}

/** What holds buffered items: their payloads, their groups, the ids of their messages. */
function joinHeld(owner: Owner) {
  const { shard, clock, limits, telemetry } = owner
  const payloads = new PayloadCache(limits, clock, messageReader(owner))
  const live = new LiveItems(payloads)
  const groups = new Groups(owner)
  const onDropped = () => telemetry.dropped({ shard, duplicates: 1 })
  const duplicates = new Duplicates({ ...owner, live, onDropped })
  return { payloads, live, groups, duplicates, packs: owner.state.seen.copy() }
}

/** What acts on them: batches, attempts, dead letters, counters. */
function joinActing(owner: Owner, { snapshot, origin, settled }: Claim) {
  const { state, journal } = owner
  const raised = raiseEpoch({ ...owner, snapshot, origin, log: owner.journalLog })
  const held = joinHeld(owner)
  const facts = settled.map(({ commit, record }) => ({ commit, fact: record.fact }))
  const projector = new Projector({ ...owner, raised }, facts, journal.last)
  const remoteAttempts = new RemoteAttempts(owner)
  const mayAct = () => !held.groups.paused && (owner.holds?.() ?? true)
  const joined = { ...owner, ...held, raised, projector, remoteAttempts, mayAct }
  const batches = new Batches(joined)
  const restoration = new Restoration({ ...joined, batches, outstanding: [...state.batches.values()] })
  return { ...joined, batches, restoration }
}

function joinIntake(acting: Acting, kept: NotedItem[]): Intake {
  const { journal, groups, restoration, ended, onFatal, onProblem, onReplayed } = acting
  return new Intake({
    ...acting,
    kept: letGo(kept),
    onGap: (from, to) => {
      // A successor may have purged them: only a commit proves that they are missing.
      const lacks = () =>
        onProblem('the inbox lacks messages', new Error(`${from} to ${to - 1} are not there`))
      journal.prove().then(lacks, () => {})
    },
    onReplayed: () => {
      onReplayed()
      groups.release()
      restoration.finish().catch((error: unknown) => {
        if (!ended()) onFatal(asError(error))
      })
    },
  })
}

/** Each once, in order: what got its place stands nowhere else. */
function* letGo<T>(items: T[]): Generator<T> {
  items.reverse()
  for (let next = items.pop(); next !== undefined; next = items.pop()) yield next
}

/** To what comes from other nodes. The answer ends it. */
function listen({ broker, shard, journal, replay, duplicates, ended, mayAct }: Acting): () => void {
  const ends = [
    broker.subscribe(askSubject(shard), (bytes, reply) => {
      if (!replay.replaying && !ended() && mayAct()) duplicates.answer(bytes, reply, replay.cursor)
    }),
    // Else an owner at rest would learn at its next commit only that it was made to let go.
    broker.subscribe(proofSubject(shard), () => void journal.prove().catch(() => {})),
  ]
  return () => {
    for (const end of ends) end()
  }
}
