/** What an owner makes of items that it knows already (docs/architecture/protocol.md, "Packs"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { encodePack, type PackItem } from '../../../internal/domain/pack.ts'
import { PackIds } from '../../../internal/domain/pack-id.ts'
import type { AppendAnswer, Log } from '../../../internal/shard/broker.ts'
import { Intake, type IntakeOptions } from '../../../internal/shard/claim/intake.ts'
import { Duplicates } from '../../../internal/shard/held/duplicates.ts'
import { Groups } from '../../../internal/shard/held/groups.ts'
import { LiveItems } from '../../../internal/shard/held/live.ts'
import { PackMemory } from '../../../internal/shard/held/pack-memory.ts'
import { PayloadCache } from '../../../internal/shard/held/payload-cache.ts'
import { replayOf } from '../../../internal/shard/held/replay.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import { Journal } from '../../../internal/shard/journal/journal.ts'
import type { Position } from '../../../internal/shard/journal/records.ts'
import { SeenPacks } from '../../../internal/shard/journal/seen-packs.ts'
import { emptyState, type FoldState, isOver } from '../../../internal/shard/journal/state.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { settled as settledTurn } from '../../ingest/support.ts'
import { BOOT, commitOf, groupId, seal, settled, UID, uuid } from '../journal-records.ts'

const EPOCH = 100

/** All share a group and a message id, which the sender gave when `explicit`. */
function item(number: number, explicit: boolean): PackItem {
  return {
    itemId: uuid(number),
    bufferUid: UID,
    groupToken: groupId(1),
    groupKey: 'k',
    messageId: 'm',
    explicit,
    credits: 1,
    receivedAt: 1,
    payload: Buffer.from('1'),
  }
}

/** Makes the ids of a writer; another number is another writer. */
const writer = (number: number) => new PackIds((size) => Buffer.alloc(size, number))

/** A journal that answers its oldest commit when the test says so. */
function heldJournal(state: FoldState) {
  const waiting: (() => void)[] = []
  let seq = EPOCH
  const append = () =>
    new Promise<AppendAnswer>((resolve) => {
      waiting.push(() => resolve({ kind: 'stored', seq: ++seq, duplicate: false }))
    })
  const journal = new Journal({
    shard: 0,
    log: { append } as Partial<Log> as Log,
    clock: new ManualClock(),
    boot: BOOT,
    epoch: EPOCH,
    lastSeq: EPOCH,
    state: () => state,
    highWater: () => null,
    claimAgain: async () => Number.NaN,
    onCommit: () => {},
    onLost: () => {},
  })
  const answer = async () => {
    waiting.shift()?.()
    await settledTurn()
  }
  return { journal, answer }
}

/** An owner that replays its inbox up to `lastSeq`. */
function owner(state: FoldState, lastSeq: number) {
  const clock = new ManualClock()
  const { journal, answer } = heldJournal(state)
  const payloads = new PayloadCache(
    { budget: 1_000, keepMs: 1_000 },
    clock,
    async () => undefined,
    async () => {},
  )
  const live = new LiveItems(payloads)
  const broker = { publish() {}, tell() {} }
  const duplicates = new Duplicates({ broker, journal, state, live, onDropped: () => {} })
  const policies = {
    peek: () => undefined,
    load: () => new Promise<never>(() => {}),
    onChange: () => () => {},
  }
  const members: number[] = []
  const restoration = { member: (_batch: unknown, { seq }: Position) => members.push(seq) }
  const intake = new Intake({
    clock,
    state,
    replay: replayOf(state),
    packs: new PackMemory(state.seen),
    payloads,
    live,
    groups: new Groups({ policies, clock, onProblem: () => {} }),
    duplicates,
    batches: { step() {} } as unknown as IntakeOptions['batches'],
    restoration: restoration as unknown as IntakeOptions['restoration'],
    head: { firstSeq: 1, lastSeq },
    kept: [].values(),
    onReplayed: () => {},
    onGap: () => {},
  })
  const read = (seq: number, packId: Buffer, ...items: PackItem[]) =>
    intake.take([{ seq, at: 0, data: encodePack(packId, null, items), msgId: null }])
  return { read, journal, answer, live, duplicates, members }
}

describe('the intake of an owner', () => {
  it('leaves items of a refused pack in the batch that they are sealed in', () => {
    const state = { ...emptyState(), seen: new SeenPacks(0, [], 2) }
    const [a, b, c] = [writer(1), writer(2), writer(3)]
    const [repeated, other] = [b.next(), c.next()]
    // Of three writers its last owner forgets the one that wrote first, and the journal the one that was noted first.
    const before = new PackMemory(state.seen)
    const admits = (seq: number, id: Buffer) => before.admits(seq, id.toString('base64url'))
    for (const [n, id] of [a.next(), repeated, a.next()].entries()) admits(1 + n, id)
    const seen = before.news(4)!
    expect([admits(4, other), admits(5, repeated)]).to.deep.equal([true, true])
    const sealed = seal(1, [{ seq: 5, index: 0 }])
    applyCommit(state, { seq: EPOCH, commit: commitOf([seen, { type: 'horizon', seq: 4 }, sealed]) })

    const { read, members, journal } = owner(state, 5)
    read(4, other)
    read(5, repeated, item(1, false))
    expect({ members, dropsNothing: journal.idle }).to.deep.equal({ members: [5], dropsNothing: true })
  })

  it('drops a duplicate twice when its original is over in between', async () => {
    const state = emptyState()
    const { read, journal, answer, live, duplicates } = owner(state, 0)
    const packs = writer(1)
    read(1, packs.next(), item(1, true))
    const original = live.get({ seq: 1, index: 0 })!
    journal.write(settled('done', 1, EPOCH), () => {
      duplicates.remove(original)
      live.remove(original)
    })
    await settledTurn()
    read(2, packs.next(), item(2, true))
    await answer()
    read(3, packs.next(), item(2, true))
    await answer()
    await answer()
    const over = [2, 3].map((seq) => isOver(state, { seq, index: 0 }))
    expect({ live: live.count, over }).to.deep.equal({ live: 0, over: [true, true] })
  })
})
