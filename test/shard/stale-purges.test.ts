/**
 * Purges by a stale owner are harmless (docs/architecture/protocol.md, "Housekeeping"): they follow a committed
 * record, so they are true whoever sends them, and however late they reach the broker.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Broker, Log } from '../../internal/shard/broker.ts'
import { FencedError } from '../../internal/shard/ports.ts'
import { eventually } from '../support/eventually.ts'
import { ownersOfEachTest } from './owners.ts'
import { numbersOf, type Owner } from './real-owner.ts'

/** Only when a test asks for it. */
const BY_HAND = { everyMs: 600_000, purgeLagMs: 0, keepBytes: 10_000, keepRatio: 1, snapshotBytes: 1_000 }
/** A group goes out with its fifth item, never by time. */
const BY_FIVE = { maxItems: 5, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }

type Purge = { log: 'inbox' | 'journal'; below: number }

describe('purges by a stale owner', function () {
  this.timeout(120_000)
  const here = ownersOfEachTest({ housekeeping: BY_HAND, batch: BY_FIVE })

  /** The broker, but that purges are on their way and do not arrive. */
  function delayingPurges(): { broker: Broker; purges: Purge[] } {
    const purges: Purge[] = []
    const slow = (name: Purge['log'], log: Log): Log =>
      new Proxy(log, {
        get: (target, property) => {
          if (property === 'purgeBelow') return async (below: number) => purges.push({ log: name, below })
          const value = Reflect.get(target, property)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    const { broker } = here
    return {
      purges,
      broker: {
        inbox: (shard) => slow('inbox', broker.inbox(shard)),
        journal: (shard) => slow('journal', broker.journal(shard)),
        archive: broker.archive,
        publish: broker.publish.bind(broker),
        tell: broker.tell.bind(broker),
        subscribe: broker.subscribe.bind(broker),
        onReconnect: broker.onReconnect.bind(broker),
      },
    }
  }

  /** Five rounds of a whole batch, and an item each that is held; numbers ascend. */
  async function load(from: number): Promise<void> {
    for (let round = 0; round < 5; round++) {
      const n = from + round * 10
      await here.ingest([0, 1, 2, 3, 4].map((i) => ({ key: 'busy', n: n + i, pad: 1_000 })))
      if (round < 2) await here.ingest([{ key: 'held', n: n + 9, pad: 100 }])
    }
  }

  const sent = () => here.made.flatMap((owner) => owner.sent.flatMap(({ body }) => numbersOf(body)))
  const batches = (owner: Owner) => owner.sent.length
  const sizes = async () => ({
    inbox: (await here.broker.inbox(0).state()).messages,
    journal: (await here.broker.journal(0).state()).messages,
  })

  it('that arrive after the claim of another take nothing that anybody still needs', async () => {
    const { broker, purges } = delayingPurges()
    const stale = await here.own({ broker })
    await load(0)
    await eventually(() => expect(batches(stale)).to.equal(5))
    // The first round writes horizon, keeps and a snapshot; the second purges behind them.
    await eventually(async () => {
      await stale.shard.housekeep()
      expect(new Set(purges.map(({ log }) => log))).to.deep.equal(new Set(['inbox', 'journal']))
    })
    const next = await here.own()
    await load(100)
    await eventually(() => expect(batches(next)).to.equal(5))
    const before = await sizes()
    for (const { log, below } of purges) await here.broker[log](0).purgeBelow(below)
    const after = await sizes()
    expect([after.inbox < before.inbox, after.journal < before.journal], 'they do purge').to.deep.equal([
      true,
      true,
    ])
    // Whoever comes now finds the held items and goes on, and nothing that was over comes again.
    await next.shard.abandon()
    const last = await here.own()
    await here.ingest([{ key: 'held', n: 999 }])
    await eventually(() =>
      expect(last.sent.map(({ body }) => numbersOf(body))).to.deep.equal([[9, 19, 109, 119, 999]]),
    )
    expect(sent()).to.have.length(new Set(sent()).size)
    expect([...next.problems, ...last.problems]).to.deep.equal([])
  })

  it('end with its claim: a round of housekeeping after it purges nothing', async () => {
    const { broker, purges } = delayingPurges()
    const stale = await here.own({ broker })
    await load(0)
    await eventually(() => expect(batches(stale)).to.equal(5))
    const next = await here.own()
    await stale.shard.housekeep().catch(() => {})
    await eventually(() => stale.ended instanceof FencedError)
    expect(purges).to.deep.equal([])
    const claim = (await here.records()).findLast(({ record }) => record.type === 'epoch')!
    expect(claim.boot).to.equal(next.boot)
  })
})
