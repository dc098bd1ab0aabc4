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
import type { NotedItem } from '../../../internal/shard/held/noted-items.ts'
import { CachedMessage, PayloadCache } from '../../../internal/shard/held/payload-cache.ts'
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
    writer: 'w',
    epoch: EPOCH,
    state: () => state,
    highWater: () => null,
    claimAgain: async () => Number.NaN,
    onCommit: () => {},
    onRefused: () => {},
    onLost: () => {},
  })
  const answer = async () => {
    waiting.shift()?.()
    await settledTurn()
  }
  return { journal, answer }
}

/** Kept in one commit, as the state says too. */
function keptItems(state: FoldState, seqs: readonly number[]): NotedItem[] {
  const message = new CachedMessage('journal', EPOCH)
  return seqs.map((seq, ordinal) => {
    state.kept.set(seq, 0, { commit: EPOCH, ordinal })
    const place = { seq, index: 0, at: 0, message, offset: 0, end: 10, payloadBytes: 1 }
    const given = { explicit: false, itemId: '', messageId: '' }
    return { ...place, ...given, groupToken: groupId(1), bufferUid: UID } as NotedItem
  })
}

/** An owner that replays its inbox up to `lastSeq`. */
function owner(state: FoldState, lastSeq: number, kept: readonly NotedItem[] = []) {
  const clock = new ManualClock()
  const { journal, answer } = heldJournal(state)
  const payloads = new PayloadCache({ payloadBudget: 1_000, payloadMs: 1_000 }, clock, async () => undefined)
  const live = new LiveItems(payloads)
  const broker = { publish() {}, tell() {} }
  const duplicates = new Duplicates({ broker, journal, state, live, onDropped: () => {} })
  const policies = {
    peek: () => undefined,
    load: () => new Promise<never>(() => {}),
    onChange: () => () => {},
  }
  const members: number[] = []
  const placed: number[] = []
  const batches = { step: (_group: unknown, { item }: { item: Position }) => placed.push(item.seq) }
  let replayed = false
  const restoration = { member: (_batch: unknown, { seq }: Position) => members.push(seq) }
  const intake = new Intake({
    clock,
    state,
    replay: { ...replayOf(state), until: lastSeq },
    packs: state.seen.copy(),
    payloads,
    live,
    groups: new Groups({ policies, clock, onProblem: () => {} }),
    duplicates,
    batches: batches as unknown as IntakeOptions['batches'],
    restoration: restoration as unknown as IntakeOptions['restoration'],
    head: { firstSeq: 1 },
    kept: kept.values(),
    onReplayed: () => {
      replayed = true
    },
    onGap: () => {},
  })
  const read = (seq: number, packId: Buffer, ...items: PackItem[]) =>
    intake.take([{ seq, at: 0, data: encodePack(packId, null, items), msgId: null }])
  const turn = async () => {
    clock.advance(0)
    await settledTurn()
  }
  const isReplayed = () => replayed
  return { intake, read, turn, journal, answer, live, duplicates, members, placed, isReplayed }
}

describe('the intake of an owner', () => {
  it('leaves items of a refused pack in the batch that they are sealed in', () => {
    const state = { ...emptyState(), seen: new SeenPacks(2) }
    const [a, b, c] = [writer(1), writer(2), writer(3)]
    const [repeated, other] = [b.next(), c.next()]
    // Of three writers its last owner forgets the one that wrote first, and the journal the one that was noted first.
    const before = state.seen.copy()
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

  it('reads what was appended in turns of the event loop', async () => {
    const { intake, turn, placed } = owner(emptyState(), 30)
    const packs = writer(1)
    const messages = Array.from({ length: 30 }, (_, n) => {
      const items = Array.from({ length: 100 }, (_, index) => item(n * 100 + index, false))
      return { seq: n + 1, at: 0, data: encodePack(packs.next(), null, items), msgId: null }
    })
    const reading = intake.take(messages)
    expect(placed.length).to.equal(2_500)
    await turn()
    await reading
    expect(placed.length).to.equal(3_000)
  })

  describe('that takes over very many kept items', () => {
    const seqs = Array.from({ length: 6_000 }, (_, n) => n + 1)

    it('gives them their places in turns of the event loop, and the replay ends behind the last one', async () => {
      const state = emptyState()
      const { intake, turn, live, isReplayed } = owner(state, 6_000, keptItems(state, seqs))
      void intake.reachedEnd(6_000)
      const seen: unknown[] = []
      for (let n = 0; n < 3; n++) {
        seen.push([live.count, isReplayed()])
        await turn()
      }
      expect(seen).to.deep.equal([
        [2_500, false],
        [5_000, false],
        [6_000, true],
      ])
    })

    it('gives a pack its place behind all that stand below it, and none before', async () => {
      const state = emptyState()
      const below = seqs.filter((seq) => seq !== 4_000)
      const { read, turn, placed } = owner(state, 6_000, keptItems(state, below))
      const reading = read(4_000, writer(1).next(), item(1, false))
      while (placed.length < 4_000) await turn()
      await reading
      expect(placed).to.deep.equal(seqs.slice(0, 4_000))
    })

    it('ends between two turns when its owner does, and takes nothing of what it was given', async () => {
      const state = emptyState()
      const { intake, read, turn, placed, isReplayed } = owner(state, 6_001, keptItems(state, seqs))
      void read(6_001, writer(1).next(), item(1, false))
      intake.stop()
      for (let n = 0; n < 3; n++) await turn()
      expect([placed.length, isReplayed()]).to.deep.equal([2_500, false])
    })
  })
})
