/**
 * The memory of a claim must not grow with the payloads that it takes over: an empty shard's memory, 60 MB, and 600 bytes an
 * item, while it claims and afterwards (docs/architecture/protocol.md, "Memory"). Nor must that of a repair.
 */
import { randomUUID } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { groupToken } from '../../internal/domain/group.ts'
import { decodePack, encodePack } from '../../internal/domain/pack.ts'
import { createJournalCopies } from '../../internal/nats/log/journal-copies.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createRemembered } from '../../internal/postgres/remembered.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { encodeCommit, encodeRecord } from '../../internal/shard/journal/codec.ts'
import type { JournalRecord, KeptItem } from '../../internal/shard/journal/records.ts'
import { repairShard } from '../../internal/shard/repair/repair.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createOwner, ingest, numbersOf } from './real-owner.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const MB = 1024 * 1024
const ITEMS = 6_000
const PAYLOAD_BYTES = 25_000
const IN_A_COMMIT = 10
const BUDGET = 60 * MB + 600 * ITEMS
/** Of payloads, which the cache keeps once they are due. */
const PAYLOAD_BUDGET = 8 * MB
const PATIENT = { timeoutMs: 120_000, everyMs: 50 }
/** A collection stops the process, and the heap of those that ran before is in it: the owner gets most of the time. */
const LOOK_PAUSE_MS = 100
const LOOK_SHARE = 0.2

function memory(): number {
  gc()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return arrayBuffers + heapUsed
}

function watchPeak() {
  const peak = { bytes: 0, end: () => clearTimeout(timer) }
  let timer = setTimeout(look, LOOK_PAUSE_MS)
  function look() {
    const before = performance.now()
    peak.bytes = Math.max(peak.bytes, memory())
    const took = performance.now() - before
    timer = setTimeout(look, Math.max(LOOK_PAUSE_MS, took / LOOK_SHARE))
  }
  return peak
}

describe('the memory of an owner that takes over what is kept', function () {
  this.timeout(300_000)
  let db: Database
  let buffer: TestBuffer
  let at: TestBroker

  before(async () => {
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
    at = await brokerAt((await natsAccount()).url, 1, 1_000 * MB)
  })
  after(async () => {
    await at.close()
    await db.end({ timeout: 2 })
  })

  /** Alone in its group, which waits for a second one. */
  function keptItem(seq: number, index: number): KeptItem {
    const key = `held-${index}`
    const payload = Buffer.from(JSON.stringify({ k: key, n: index, pad: 'x'.repeat(PAYLOAD_BYTES) }))
    const ids = { itemId: randomUUID(), bufferUid: buffer.uid, groupToken: groupToken(buffer.uid, key) }
    const given = { groupKey: key, messageId: `m${seq}-${index}`, explicit: true, credits: 1, receivedAt: 1 }
    const pack = encodePack(Buffer.alloc(12), null, [{ ...ids, ...given, payload }])
    let item = pack
    decodePack(pack, ({ offset, end }) => {
      item = pack.subarray(offset, end)
    })
    return { position: { seq, index }, at: Date.now(), item }
  }

  async function append(epoch: number, ...records: JournalRecord[]): Promise<number> {
    const header = { boot: randomUUID(), epoch, at: Date.now(), highWater: null }
    const data = encodeCommit(header, records.map(encodeRecord))
    const answer = await at.broker.journal(0).append(data, { msgId: randomUUID(), timeoutMs: 10_000 })
    if (answer.kind !== 'stored') throw new Error(JSON.stringify(answer))
    return answer.seq
  }

  /** What an owner left that carried everything into the journal. */
  async function writeKept(): Promise<void> {
    const last = await ingest(at.broker, buffer, [])
    const epoch = await append(0, { type: 'epoch' })
    for (let index = 0; index < ITEMS; index += IN_A_COMMIT) {
      const items = Array.from({ length: IN_A_COMMIT }, (_, n) => keptItem(last, index + n))
      await append(epoch, { type: 'keep', items })
    }
    await append(epoch, { type: 'horizon', seq: last + 1 }, { type: 'release', batches: [] })
  }

  const owner = () =>
    createOwner({
      broker: at.broker,
      db,
      buffer,
      payloadBudget: PAYLOAD_BUDGET,
      batch: { maxItems: 2, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 },
      housekeeping: { everyMs: 600_000 },
    })

  it('stays within its budget, whatever payloads weigh, and each can be sent', async () => {
    await writeKept()
    const { bytes } = await at.broker.journal(0).state()
    expect(bytes, 'payloads outweigh the budget').to.be.above(2 * BUDGET)
    const empty = memory()
    const second = owner()
    const peak = watchPeak()
    try {
      await second.shard.start()
      await eventually(() => second.shard.state === 'running', PATIENT)
    } finally {
      peak.end()
    }
    expect(second.shard.figures(Date.now())?.items).to.equal(ITEMS)
    expect(memory() - empty, 'afterwards').to.be.below(BUDGET)
    expect(peak.bytes - empty, 'while it claimed').to.be.below(BUDGET)
    // A second item of the group makes it due, and the payload is read again.
    await ingest(at.broker, buffer, [{ key: 'held-17', n: 1_000_000 }])
    await eventually(() => second.sent.length === 1, PATIENT)
    expect(numbersOf(second.sent[0]!.body)).to.deep.equal([17, 1_000_000])
    expect(second.problems).to.deep.equal([])
    await second.shard.abandon()
  })

  it('is enough for a repair, too', async () => {
    const clock = systemClock()
    const copies = createJournalCopies({ connection: at.connection, clock, replicas: 1 })
    const ports = { broker: at.broker, clock, copies, remembered: createRemembered(db), boot: randomUUID() }
    const empty = memory()
    const peak = watchPeak()
    try {
      await repairShard({ ...ports, shard: 0, renew: true, syncLagMs: 0, onWhole: () => {} })
    } finally {
      peak.end()
      copies.close()
    }
    expect(peak.bytes - empty).to.be.below(BUDGET)
    const next = owner()
    await next.shard.start()
    await eventually(() => next.shard.state === 'running', PATIENT)
    // One was sent before.
    expect(next.shard.figures(Date.now())?.items).to.equal(ITEMS - 1)
    await next.shard.abandon()
  })
})
