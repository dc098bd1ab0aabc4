/** How the parts of an owner hear of a reconnect, in memory (docs/architecture/protocol.md, "Housekeeping"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { encodePack } from '../../internal/domain/pack.ts'
import { PACK_ID_BYTES } from '../../internal/domain/pack-id.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { Semaphore } from '../../internal/runtime/semaphore.ts'
import { assembleShard } from '../../internal/shard/assembly.ts'
import { HOUSEKEEPING_LIMITS } from '../../internal/shard/housekeeping/limits.ts'
import { NO_COMMIT } from '../../internal/shard/journal/commit-name.ts'
import type { ShardEvents, ShardOptions } from '../../internal/shard/options.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { settled } from '../ingest/support.ts'
import { BOOT } from './journal-records.ts'
import { memoryArchive } from './memory-archive.ts'
import { memoryLog } from './memory-log.ts'
import { Stream } from './simulation/streams.ts'

const NOW = 1_000
const LAG_S = 45
const AWAY_AT_S = 30
const EVENTS = {
  ended: () => false,
  onFatal: (error: Error) => {
    throw error
  },
  onReplayed: () => {},
  onCommit: () => {},
  onRefused: () => {},
  onProblem: () => {},
} as unknown as ShardEvents

describe('an owner with its parts', () => {
  function optionsOf(inbox: Stream, clock: Clock, reconnects: (() => void)[]): ShardOptions {
    const journal = new Stream({ windowMs: 0 })
    const archive = memoryArchive()
    const nothing = () => {}
    return {
      shard: 0,
      boot: BOOT,
      claim: 1,
      clock,
      broker: {
        journal: () => memoryLog(() => journal),
        inbox: () => memoryLog(() => inbox),
        archive: () => archive,
        publish: nothing,
        tell: nothing,
        subscribe: () => nothing,
        onReconnect: (listener: () => void) => {
          reconnects.push(listener)
          return nothing
        },
      },
      randomness: { bytes: (count: number) => Buffer.alloc(count, 9) },
      policies: { peek: nothing, load: async () => undefined, onChange: () => nothing },
      deadLetters: {
        remembered: async () => ({ claim: NO_COMMIT, counted: NO_COMMIT }),
        replaceEpoch: async () => true,
        raiseEpoch: async () => {},
      },
      projection: { position: async () => 0, project: async () => {} },
      telemetry: new Proxy({}, { get: () => nothing }),
      limits: {
        payloadBudget: 1_000,
        payloadMs: 1_000,
        attemptsPerBuffer: 1,
        factsAtOnce: 1,
        housekeeping: { ...HOUSEKEEPING_LIMITS, purgeLagMs: 0, syncLagMs: LAG_S * 1_000 },
      },
      largeWrites: new Semaphore(1),
      onEnd: nothing,
    } as unknown as ShardOptions
  }

  /** After how many seconds it purges its inbox. */
  async function purgedAfter(awayAt = 0): Promise<number> {
    const inbox = new Stream({ windowMs: 0 })
    for (const number of [1, 2])
      inbox.append(NOW, encodePack(Buffer.alloc(PACK_ID_BYTES, number), null, []), null)
    const { firstSeq } = inbox.state()
    const clock = new ManualClock()
    const reconnects: (() => void)[] = []
    const shard = await assembleShard(optionsOf(inbox, clock, reconnects), EVENTS)
    shard.begin()
    let second = 0
    while (inbox.state().firstSeq === firstSeq && second < 300) {
      for (let turn = 0; turn < 5; turn++) await settled()
      clock.advance(1_000)
      if (++second === awayAt) for (const reconnected of reconnects) reconnected()
    }
    shard.stop()
    return second
  }

  it('waits for the disk before it purges, where the broker stays', async () => {
    expect(await purgedAfter()).to.be.within(LAG_S, AWAY_AT_S + LAG_S - 1)
  })

  it('waits for the disk again before it purges, where the broker was away', async () => {
    expect(await purgedAfter(AWAY_AT_S)).to.be.within(AWAY_AT_S + LAG_S, 299)
  })
})
