/**
 * Every durable write of an owner into its journal, and that a stale owner loses each of them
 * (docs/architecture/protocol.md, "Commits"; fault matrix, rows 7, 8 and 10). The list is one of each record type: a
 * new one does not compile here before it stands in it. What an owner writes to Postgres:
 * `test/postgres/owner-writes.test.ts`.
 */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { Log } from '../../internal/shard/broker.ts'
import { appendEpoch } from '../../internal/shard/claim/takeover.ts'
import { encodeRecord } from '../../internal/shard/journal/codec.ts'
import { Journal } from '../../internal/shard/journal/journal.ts'
import type { JournalRecord } from '../../internal/shard/journal/records.ts'
import { emptyState } from '../../internal/shard/journal/state.ts'
import { FencedError } from '../../internal/shard/ports.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { natsAccount } from '../support/servers.ts'
import { FIRST, groupId, seal, settled, uuid } from './journal-records.ts'

const AT = { seq: FIRST, index: 0 }
const BATCH = { groupId: groupId(1), version: FIRST }

/** One of each that stands in journals. */
const RECORDS: { [T in JournalRecord['type']]: JournalRecord & { type: T } } = {
  epoch: { type: 'epoch' },
  release: { type: 'release', batches: [{ ...BATCH, deadline: 1 }] },
  seal: of('seal', seal(1, [AT])),
  unseal: { type: 'unseal', ...BATCH },
  attempt: { type: 'attempt', ...BATCH, attempt: 2, nextAt: 1 },
  done: of('done', settled('done', 1, FIRST)),
  dead: of('dead', settled('dead', 1, FIRST)),
  drop: { type: 'drop', position: AT, itemId: uuid(1), originalItemId: uuid(2) },
  discard: { type: 'discard', batch: BATCH, positions: [AT] },
  keep: { type: 'keep', items: [{ position: AT, at: 1, item: Buffer.from('item') }] },
  horizon: { type: 'horizon', seq: FIRST },
  seen: { type: 'seen', upTo: FIRST, writers: [{ writer: 'writer', number: 1 }] },
}

function of<T extends JournalRecord['type']>(_type: T, record: JournalRecord): JournalRecord & { type: T } {
  return record as JournalRecord & { type: T }
}

describe('the journal writes of an owner', () => {
  const clock = systemClock()
  let nats: TestBroker
  let log: Log

  before(async () => {
    nats = await brokerAt((await natsAccount()).url)
    log = nats.broker.journal(0)
  })
  after(() => nats.close())

  /** The claim of another boot, and its journal. */
  async function claim(): Promise<{ journal: Journal; lost: Error[] }> {
    const boot = randomUUID()
    const epoch = await appendEpoch(log, { boot, claim: 1, clock, stopped: () => false })
    const lost: Error[] = []
    const state = emptyState()
    const journal = new Journal({
      shard: 0,
      log,
      clock,
      boot,
      writer: `${boot}-1`,
      epoch,
      state: () => state,
      highWater: () => null,
      claimAgain: async () => Number.NaN,
      onCommit: () => {},
      onRefused: () => {},
      onLost: (error) => lost.push(error),
    })
    return { journal, lost }
  }

  for (const [type, record] of Object.entries(RECORDS)) {
    it(`${type}: refused to a stale owner, stored for the present one`, async () => {
      const stale = await claim()
      await stale.journal.prove()
      const present = await claim()
      const before = await log.state()
      expect(await failureOf(stale.journal.commit(record))).to.be.instanceOf(FencedError)
      expect(stale.lost.map(({ name }) => name)).to.deep.equal(['FencedError'])
      expect(await log.state()).to.deep.include({ lastSeq: before.lastSeq, messages: before.messages })
      const seq = await present.journal.commit(record)
      const stored = await log.get(seq)
      expect(seq).to.equal(before.lastSeq + 1)
      const bytes = encodeRecord(record)
      expect(Buffer.from(stored!.data.subarray(-bytes.length))).to.deep.equal(bytes)
      await present.journal.close()
    })
  }

  it('a commit of all of them together: refused to a stale owner', async () => {
    const stale = await claim()
    const present = await claim()
    const { lastSeq } = await log.state()
    // Nothing is written behind a release.
    const { release, ...others } = RECORDS
    const failures = await Promise.all(
      [...Object.values(others), release].map((record) => failureOf(stale.journal.commit(record))),
    )
    for (const failure of failures) expect(failure).to.be.instanceOf(FencedError)
    expect((await log.state()).lastSeq).to.equal(lastSeq)
    await present.journal.close()
  })

  it('are made by `append` alone: all else of a log reads, or purges what is over whoever sends it', () => {
    const offered = new Set(['append', 'purgeBelow', 'state', 'get', 'last', 'follow', 'range'])
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(log))
    expect(methods.filter((name) => name !== 'constructor' && !offered.has(name))).to.deep.equal([])
  })
})

async function failureOf(writing: Promise<unknown>): Promise<unknown> {
  return writing.then(
    () => undefined,
    (error: unknown) => error,
  )
}
