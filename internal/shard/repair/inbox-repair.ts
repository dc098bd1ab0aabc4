/** Makes the positions of an inbox mean one thing again (docs/architecture/repair.md, "The inbox"). */

import { encodePack, withPackId } from '../../domain/pack.ts'
import { PACK_ID_BYTES } from '../../domain/pack-id.ts'
import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Log } from '../broker.ts'
import { packIdOf } from '../claim/inbox-check.ts'
import { deadRecord } from '../claim/restoration.ts'
import { appendEpoch, claimShard } from '../claim/takeover.ts'
import { batchKey } from '../journal/batch-name.ts'
import { Journal } from '../journal/journal.ts'
import type { HighWater, Position } from '../journal/records.ts'
import { type FoldState, isOver } from '../journal/state.ts'
import { type InboxEvidence, weighInbox } from './evidence.ts'
import { ambiguousPacks, isLost, packsToRepeat } from './examination.ts'
import type { RepairOptions } from './ports.ts'

const APPEND_TIMEOUT_MS = 5_000
const RETRY_PAUSE_MS = 50
const FILLERS_AT_ONCE = 256
/** Positions that one record discards. */
const DISCARDED_AT_ONCE = 5_000

interface Owned extends RepairOptions {
  readonly inbox: Log
  readonly journal: Journal
  readonly state: FoldState
  readonly epoch: number
}

/**
 * Claims the shard, repairs its inbox when that needs it, and releases it. That nothing below `lostBelow` is left says the journal
 * which is written anew after it: until then every claim stops as before. Rejects with FencedError when a node claims it meanwhile.
 */
export async function repairInbox(options: RepairOptions): Promise<void> {
  const { broker, shard, clock, boot } = options
  let mark: HighWater | null = null
  const writer = `${boot}-inbox`
  const archive = new SnapshotArchive({ archive: broker.archive(shard), clock, writer })
  const asked = { broker, archive, shard, clock, boot, claim: 1, stopped: () => false, repairs: true }
  const { claim, journal } = await claimShard(
    asked,
    (epoch, state) =>
      new Journal({
        shard,
        log: broker.journal(shard),
        clock,
        boot,
        writer,
        epoch,
        state,
        highWater: () => mark,
        claimAgain: () => appendEpoch(broker.journal(shard), { ...asked, claim: 2 }),
        onCommit: () => {},
        onRefused: () => {},
        // Whoever waits for a commit is told.
        onLost: () => {},
      }),
  )
  const { epoch, state } = claim
  const owned = { ...options, inbox: broker.inbox(shard), journal, state, epoch }
  const evidence = await weighInbox(owned.inbox, broker.journal(shard), state)
  const { named, proven, fault, lostBelow } = evidence
  if (fault !== null) {
    await appendFillers(owned, named)
    await appendAgain(owned, proven, named)
  }
  if (fault !== null || lostBelow !== null) await giveUpBroken(owned, evidence)
  if (fault !== null) {
    await discardAmbiguous(owned, proven, named)
    mark = await lastMark(owned)
    // Void, but a commit of it carries the mark.
    await journal.commit({ type: 'horizon', seq: state.horizon })
  }
  await journal.commit({ type: 'release', batches: [] })
  await journal.close()
}

/** Until the inbox ends above `named`; what senders append meanwhile helps. */
async function appendFillers({ inbox, clock, boot, epoch }: Owned, named: number): Promise<void> {
  // Of this claim: none of an earlier run is taken for one of these.
  const packId = Buffer.alloc(PACK_ID_BYTES)
  packId.write(boot.replaceAll('-', ''), 'hex')
  const data = encodePack(packId, null, [])
  let count = 0
  for (;;) {
    const { lastSeq } = await inbox.state()
    const missing = named + 1 - lastSeq
    if (missing <= 0) return
    const some = Array.from({ length: Math.min(missing, FILLERS_AT_ONCE) }, () =>
      append(inbox, clock, data, `repair-${epoch}-${count++}`),
    )
    await Promise.all(some)
  }
}

async function appendAgain({ inbox, clock }: Owned, proven: number, named: number): Promise<void> {
  for await (const { packId, copyId, data } of packsToRepeat(inbox, proven, named))
    await append(inbox, clock, withPackId(data, copyId), `again-${packId}`)
}

async function append(inbox: Log, clock: Clock, data: Uint8Array, msgId: string): Promise<void> {
  for (;;) {
    const answer = await inbox.append(data, { msgId, timeoutMs: APPEND_TIMEOUT_MS })
    if (answer.kind === 'stored') return
    if (answer.kind === 'full') throw new Error('the inbox has no room: raise the max_bytes of its stream')
    await sleep(clock, RETRY_PAUSE_MS)
  }
}

/** What Postgres has as a dead letter lacks only its record; of the others the next owner seals what is left. */
async function giveUpBroken(
  { state, journal, remembered, clock }: Owned,
  evidence: InboxEvidence,
): Promise<void> {
  const broken = [...state.batches.values()].filter(({ seal }) =>
    seal.positions.some((each) => isLost(each, evidence, state)),
  )
  const names = broken.map(({ groupId, version }) => ({ groupId, version }))
  const dead = new Set((await remembered.dead(names)).map(batchKey))
  await Promise.all(
    broken.map((batch) => {
      const { groupId, version } = batch
      if (dead.has(batchKey(batch))) return journal.commit(deadRecord(batch, clock.now()))
      return journal.commit({ type: 'unseal', groupId, version })
    }),
  )
}

/** Their items stand above `named` now. */
async function discardAmbiguous(owned: Owned, proven: number, named: number): Promise<void> {
  const { inbox, state, journal } = owned
  let positions: Position[] = []
  const discard = async () => {
    if (positions.length > 0) await journal.commit({ type: 'discard', batch: null, positions })
    positions = []
  }
  for await (const { seq, items } of ambiguousPacks(inbox, proven, named)) {
    for (let index = 0; index < items; index++) {
      const position = { seq, index }
      if (!isOver(state, position) && !state.kept.has(seq, index)) positions.push(position)
    }
    if (positions.length >= DISCARDED_AT_ONCE) await discard()
  }
  await discard()
}

async function lastMark({ inbox }: Owned): Promise<HighWater> {
  const last = await inbox.last()
  const packId = last && packIdOf(last)
  if (!last || packId === undefined) throw new Error('the last message of the inbox is no pack')
  return { seq: last.seq, packId }
}
