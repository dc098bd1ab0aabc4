import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { createAuditWriter } from '../../internal/audit/writer.ts'
import type { AuditRecord } from '../../internal/domain/audit.ts'
import { DeadlineError } from '../../internal/runtime/deadline.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { auditRecord } from './record.ts'

const AWAY = new Error('away')

describe('the writer of the audit', () => {
  let clock: ManualClock
  /** Ids of each statement. */
  let statements: string[][]
  let stored: string[]
  let insert: (records: readonly AuditRecord[]) => Promise<void>
  let written: number
  let waits: unknown[]
  let lost: string[]

  beforeEach(() => {
    clock = new ManualClock()
    statements = []
    stored = []
    insert = async () => {}
    written = 0
    waits = []
    lost = []
  })

  function writer(maxWaiting?: number) {
    return createAuditWriter({
      clock,
      store: {
        async insert(records) {
          statements.push(records.map(({ auditId }) => auditId))
          await insert(records)
          stored.push(...records.map(({ auditId }) => auditId))
        },
      },
      telemetry: {
        written: (records) => {
          written += records
        },
        waits: (error) => waits.push(error),
      },
      isOutage: (error) => error === AWAY || error instanceof DeadlineError,
      onLost: (reason, records) => lost.push(...records.map(({ auditId }) => `${reason} ${auditId}`)),
      ...(maxWaiting !== undefined && { maxWaiting }),
    })
  }

  const named = (auditId: string) => auditRecord({ auditId })

  /** Lets `ms` pass, and what then runs come to its next wait. */
  async function pass(ms: number): Promise<void> {
    clock.advance(ms)
    await setImmediate()
  }

  it('writes what comes within a moment in one statement, and nobody waits for it', async () => {
    const audit = writer()
    expect(['a', 'b', 'c'].map((id) => audit.add(named(id)))).to.deep.equal([true, true, true])
    expect(statements).to.deep.equal([])
    await pass(250)
    expect([statements, written, clock.pending]).to.deep.equal([[['a', 'b', 'c']], 3, 0])
  })

  it('writes 500 in a statement, one statement behind the other', async () => {
    const audit = writer()
    let running = 0
    insert = async () => {
      expect(++running).to.equal(1)
      await setImmediate()
      running--
    }
    for (let n = 0; n < 1_200; n++) audit.add(named(`${n}`))
    await pass(250)
    for (let n = 0; n < 10; n++) await setImmediate()
    expect(statements.map(({ length }) => length)).to.deep.equal([500, 500, 200])
    expect(stored).to.deep.equal(Array.from({ length: 1_200 }, (_, n) => `${n}`))
  })

  it('keeps everything while Postgres is away, tells it once, and writes it afterwards under the same ids', async () => {
    const audit = writer()
    insert = () => Promise.reject(AWAY)
    audit.add(named('a'))
    await pass(250)
    audit.add(named('b'))
    await pass(999)
    expect(statements).to.deep.equal([['a']])
    await pass(1)
    expect([statements, waits, lost]).to.deep.equal([[['a'], ['a', 'b']], [AWAY], []])
    insert = async () => {}
    await pass(1_000)
    expect([stored, written]).to.deep.equal([['a', 'b'], 2])
    insert = () => Promise.reject(AWAY)
    audit.add(named('c'))
    await pass(250)
    expect(waits, 'of the next outage').to.have.length(2)
  })

  it('takes no more than its bound, those that are being written included', async () => {
    const audit = writer(3)
    insert = () => new Promise(() => {})
    for (const id of ['a', 'b']) audit.add(named(id))
    await pass(250)
    expect(['c', 'd'].map((id) => audit.add(named(id)))).to.deep.equal([true, false])
    expect(lost, 'whoever added it knows').to.deep.equal([])
  })

  it('sends a statement again that is not answered', async () => {
    const audit = writer()
    insert = () => new Promise(() => {})
    audit.add(named('a'))
    await pass(250)
    insert = async () => {}
    await pass(10_000)
    await pass(1_000)
    expect([statements, stored, lost]).to.deep.equal([[['a'], ['a']], ['a'], []])
  })

  it('loses one record that Postgres refuses, and none of those beside it', async () => {
    const audit = writer()
    insert = async (records) => {
      if (records.some(({ auditId }) => auditId === 'bad')) throw new Error('invalid byte sequence')
    }
    for (const id of ['a', 'bad', 'b', 'c']) audit.add(named(id))
    await pass(250)
    for (let n = 0; n < 10; n++) await setImmediate()
    expect(stored).to.deep.equal(['a', 'b', 'c'])
    expect([lost, written, waits]).to.deep.equal([['refused bad'], 3, []])
    for (const id of ['d', 'e']) audit.add(named(id))
    await pass(250)
    expect(statements.at(-1), 'many in one statement again').to.deep.equal(['d', 'e'])
  })

  it('writes what it has when it is stopped, and takes nothing afterwards', async () => {
    const audit = writer()
    audit.add(named('a'))
    await audit.stop()
    expect([stored, audit.add(named('b')), clock.pending]).to.deep.equal([['a'], false, 0])
  })

  it('gives up when a stop finds Postgres away, and says what is lost', async () => {
    const audit = writer()
    insert = () => Promise.reject(AWAY)
    audit.add(named('a'))
    await audit.stop()
    expect([stored, lost]).to.deep.equal([[], ['stopped a']])
  })

  it('ends within 3 s although Postgres says nothing', async () => {
    const audit = writer()
    insert = () => new Promise(() => {})
    audit.add(named('a'))
    await pass(250)
    audit.add(named('b'))
    let ended = false
    const stop = audit.stop().then(() => {
      ended = true
    })
    await pass(2_999)
    expect(ended).to.equal(false)
    await pass(1)
    await stop
    expect(lost).to.deep.equal(['stopped a', 'stopped b'])
  })
})
