/** What an owner takes for seen while the broker may have lost messages. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Journal } from '../../internal/shard/journal/journal.ts'
import { emptyState } from '../../internal/shard/journal/state.ts'
import { LogWatch } from '../../internal/shard/log-watch.ts'
import type { ShardEvents, ShardOptions } from '../../internal/shard/options.ts'
import { FencedError } from '../../internal/shard/ports.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

const markAt = (seq: number) => ({ seq, packId: `pack ${seq}` })

describe('the watch over the logs of an owner', () => {
  let reconnect: () => void
  let seen: () => void
  let notSeen: (error: Error) => void
  let clock: ManualClock
  let ends: string[]
  let told: string[]
  let steps: string[]
  let watch: LogWatch
  const replay = { cursor: 1, highWater: markAt(10), replaying: false, until: 0 }

  beforeEach(() => {
    ends = []
    told = []
    steps = []
    clock = new ManualClock()
    replay.highWater = markAt(10)
    const inbox = { state: async () => ({ firstSeq: 11, lastSeq: 10 }) }
    const broker = {
      inbox: () => inbox,
      onReconnect: (listener: () => void) => {
        reconnect = listener
        return () => {}
      },
    }
    const events = {
      ended: () => false,
      onProblem: () => {},
      onRefused: ({ message }: Error) => told.push(message),
      onFatal: ({ message }: Error) => {
        ends.push(message)
        steps.push('ends')
      },
    }
    const randomness = { bytes: (count: number) => new Uint8Array(count) }
    watch = new LogWatch(
      { broker, clock, randomness } as unknown as ShardOptions,
      events as unknown as ShardEvents,
    )
    const seeAgain = async (seeInbox: () => Promise<void>) => {
      await new Promise<void>((resolve, reject) => {
        seen = resolve
        notSeen = reject
      })
      await seeInbox()
      steps.push('goes on')
    }
    const prove = async () => void told.push('prove')
    watch.begin({ reconnected: () => {}, seeAgain, prove } as unknown as Journal)
    watch.saw({ state: emptyState(), replay })
  })

  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const checked = async () => {
    seen()
    await turn()
  }

  it('lets nothing be read, behind a reconnect, until both logs were seen', async () => {
    watch.attend({ pause: () => steps.push('pause'), goOn: () => steps.push('go on') })
    expect(steps).to.deep.equal([])
    reconnect()
    const first = seen
    reconnect()
    first()
    await turn()
    expect(steps, 'behind another one').to.not.include('go on')
    await checked()
    expect(steps).to.deep.equal(['pause', 'pause', 'goes on', 'goes on', 'go on'])
  })

  it('holds a reading that begins behind a reconnect', async () => {
    reconnect()
    watch.attend({ pause: () => steps.push('pause'), goOn: () => steps.push('go on') })
    await checked()
    expect(steps).to.deep.equal(['pause', 'goes on', 'go on'])
  })

  it('ends an owner at once, and behind a reconnect once the logs were seen', async () => {
    watch.fail(new Error('strange'))
    expect(ends).to.deep.equal(['strange'])
    reconnect()
    watch.fail(new Error('stranger'))
    expect(ends).to.deep.equal(['strange'])
    await checked()
    expect(ends).to.deep.equal(['strange', 'stranger'])
    expect(steps.slice(-2), 'before its journal goes on').to.deep.equal(['ends', 'goes on'])
  })

  it('tells after 5 s that the shard stands still, and proves that it goes on', async () => {
    reconnect()
    for (let ms = 0; ms <= 5_500; ms += 500) {
      notSeen(new Error('no leader'))
      await turn()
      clock.advance(500)
      await turn()
    }
    expect(told).to.deep.equal(['the journal does not take a commit: no leader'])
    await checked()
    expect(told.slice(1)).to.deep.equal(['prove'])
    reconnect()
    await checked()
    expect(told.slice(2), 'where it was seen at once').to.deep.equal([])
  })

  it('ends a fenced owner at once', () => {
    reconnect()
    watch.fail(new FencedError('fenced'))
    expect(ends).to.deep.equal(['fenced'])
  })
})
