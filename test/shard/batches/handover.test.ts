import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { PassedResults, RemoteAttempts } from '../../../internal/shard/batches/handover.ts'
import type { Broker } from '../../../internal/shard/broker.ts'
import type { OpenBatch } from '../../../internal/shard/journal/state.ts'
import type { AttemptResult } from '../../../internal/shard/ports.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

const delivered: AttemptResult = {
  delivered: true,
  retryable: false,
  statusCode: 200,
  errorClass: null,
  error: null,
  durationMs: 5,
  responseBody: null,
}
const batch = { groupId: 'g', version: 7, attempt: 2 }

describe('shard: results of attempts that outlive a hand-over', () => {
  /** Core messages of one process, lost while `lost`. */
  function wire() {
    const handlers = new Map<string, (data: Uint8Array, reply: string | undefined) => void>()
    const state = { lost: false, published: 0 }
    return {
      state,
      messages: {
        publish(subject: string, data: Uint8Array, reply?: string) {
          state.published++
          if (!state.lost) handlers.get(subject)?.(data, reply)
        },
        subscribe(subject: string, handler: (data: Uint8Array, reply: string | undefined) => void) {
          handlers.set(subject, handler)
          return () => handlers.delete(subject)
        },
      },
    }
  }

  function pair(released = new Map([['g:7', 10_000]])) {
    const clock = new ManualClock()
    const { messages, state: wires } = wire()
    const shared = { broker: messages as unknown as Broker, clock, shard: 3 }
    const state = { released, batches: new Map([['g:7', { attempt: 2 } as OpenBatch]]) }
    const last = new PassedResults({ ...shared, boot: randomUUID() }, [batch])
    const between = new PassedResults({ ...shared, boot: randomUUID() }, [batch])
    return {
      clock,
      messages,
      state: wires,
      last,
      between,
      next: () => new RemoteAttempts({ ...shared, state }),
    }
  }

  it('reach the next owner, also when it was not there yet', async () => {
    const { clock, last, next } = pair()
    last.tell(batch, delivered)
    expect(last.done).to.equal(false)
    const remoteAttempts = next()
    clock.advance(100)
    expect(await remoteAttempts.result(batch)).to.deep.equal(delivered)
    expect(last.done).to.equal(true)
  })

  it('are not confirmed before somebody has them: the one who got them may let go before that', async () => {
    const { clock, last, next } = pair()
    const between = next()
    last.tell(batch, delivered)
    clock.advance(1_000)
    expect(last.done).to.equal(false)
    between.stop()
    const remoteAttempts = next()
    const result = remoteAttempts.result(batch)
    clock.advance(100)
    expect(await result).to.deep.equal(delivered)
    expect(last.done).to.equal(true)
  })

  it('are neither taken nor waited for by one who has let go: they are for whoever is next', async () => {
    const { clock, last, next } = pair(new Map([['g:7', new ManualClock().now() + 5_000]]))
    const between = next()
    let settled = 0
    const count = () => settled++
    void between.result(batch).then(count)
    between.stop()
    void between.result(batch).then(count)
    last.tell(batch, delivered)
    clock.advance(1_000)
    expect(last.done).to.equal(false)
    const result = next().result(batch)
    clock.advance(100)
    expect(await result).to.deep.equal(delivered)
    clock.advance(5_000)
    await setImmediate()
    expect([settled, last.done]).to.deep.equal([0, true])
  })

  it('count for more than what one in between says, who gave up waiting for them', async () => {
    const { clock, last, between, next } = pair()
    const remoteAttempts = next()
    last.tell(batch, delivered)
    between.tell(batch, { ...delivered, delivered: false, unsent: true })
    clock.advance(100)
    expect(await remoteAttempts.result(batch)).to.deep.equal(delivered)
  })

  it('count for their own attempt: what is told of an earlier one is known already', async () => {
    const { clock, last, between, next } = pair()
    const remoteAttempts = next()
    last.tell({ ...batch, attempt: 1 }, { ...delivered, delivered: false, retryable: true })
    between.tell(batch, delivered)
    clock.advance(100)
    expect(last.done).to.equal(true)
    expect(remoteAttempts.unclaimed().map(({ attempt }) => attempt)).to.deep.equal([2])
    expect(await remoteAttempts.result(batch)).to.deep.equal(delivered)
  })

  it('count without the number of their attempt, too, as nodes of an earlier version tell them', async () => {
    const { messages, next } = pair()
    const remoteAttempts = next()
    const { groupId, version } = batch
    messages.publish('shard.3.results', Buffer.from(JSON.stringify({ groupId, version, result: delivered })))
    expect(await remoteAttempts.result(batch)).to.deep.equal(delivered)
  })

  it('are told until they are known, and once more is no harm', async () => {
    const { clock, state, last, next } = pair()
    const remoteAttempts = next()
    const result = remoteAttempts.result(batch)
    state.lost = true
    last.tell(batch, delivered)
    clock.advance(1_000)
    state.lost = false
    clock.advance(100)
    expect(last.done).to.equal(true)
    const { published } = state
    clock.advance(1_000)
    expect(state.published).to.equal(published)
    last.tell(batch, { ...delivered, statusCode: 500 })
    expect((await result)?.statusCode).to.equal(200)
  })

  it('are waited for until the deadline, no longer', async () => {
    const { clock, next } = pair(new Map([['g:7', new ManualClock().now() + 400]]))
    const remoteAttempts = next()
    expect(remoteAttempts.has(batch)).to.equal(true)
    expect(remoteAttempts.has({ groupId: 'g', version: 8 })).to.equal(false)
    let result: AttemptResult | null | undefined
    void remoteAttempts.result(batch).then((value) => {
      result = value
    })
    clock.advance(399)
    await Promise.resolve()
    expect(result).to.equal(undefined)
    clock.advance(1)
    await Promise.resolve()
    await Promise.resolve()
    expect(result).to.equal(null)
  })

  it('are waited for no longer when the clock is set back meanwhile', async () => {
    const { clock, next } = pair(new Map([['g:7', new ManualClock().now() + 400]]))
    const remoteAttempts = next()
    clock.suspend(-3_600_000)
    const waiting = remoteAttempts.result(batch)
    clock.advance(400)
    expect(await waiting).to.equal(null)
  })

  it('a clock far ahead makes nobody wait for longer than an attempt can take', async () => {
    const { clock, next } = pair(new Map([['g:7', new ManualClock().now() + 3_600_000]]))
    const waiting = next().result(batch)
    clock.advance(15_000)
    expect(await waiting).to.equal(null)
  })
})
