import { expect } from 'chai'
import { describe, it } from 'mocha'
import { BufferState } from '../../../internal/shard/held/buffer-state.ts'
import { LastFlushes } from '../../../internal/shard/held/last-flushes.ts'
import { storedBuffer } from '../../domain/sample-buffer.ts'

describe('the last flushes of groups that hold nothing', () => {
  const NOW = 1_790_000_000_000

  /** A buffer that keeps two flushes of a group apart for `delayMs`. */
  function bufferOf(customerId: string, uid: string, delayMs = 1_000, deleted = false): BufferState {
    const state = new BufferState(uid)
    update(state, customerId, delayMs, deleted)
    return state
  }

  function update(state: BufferState, customerId: string, delayMs: number, deleted = false): void {
    const buffer = { ...storedBuffer(), customerId }
    buffer.throughput = { ...buffer.throughput, minDelayBetweenFlushMs: delayMs }
    state.update({ uid: state.uid, version: 1, deleted, suspended: false, buffer })
  }

  /** How many of `groups` flushes of the buffer are still known. */
  function known(flushes: LastFlushes, buffer: BufferState, groups: number): number {
    const ids = Array.from({ length: groups }, (_, n) => `g${n}`)
    return ids.filter((id) => flushes.take(buffer, id, NOW) !== undefined).length
  }

  function remember(flushes: LastFlushes, buffer: BufferState, groups: number): void {
    for (let n = 0; n < groups; n++) flushes.remember(buffer, `g${n}`, NOW + n)
  }

  it('are known once, to whoever opens the group again', () => {
    const flushes = new LastFlushes(NOW)
    const buffer = bufferOf('c', 'u')
    flushes.remember(buffer, 'g', NOW + 5)
    expect(flushes.take(bufferOf('c', 'other'), 'g', NOW + 10)).to.equal(undefined)
    expect(flushes.take(buffer, 'g', NOW + 10)).to.equal(NOW + 5)
    expect([flushes.take(buffer, 'g', NOW + 10), flushes.has(buffer)]).to.deep.equal([undefined, false])
  })

  it('are never later than the present: the clock may have been set back', () => {
    const flushes = new LastFlushes(NOW)
    const buffer = bufferOf('c', 'u')
    flushes.remember(buffer, 'g', NOW + 86_400_000)
    expect(flushes.take(buffer, 'g', NOW)).to.equal(NOW)
  })

  it('are forgotten when the delay of their buffer is over, as it is now', () => {
    const flushes = new LastFlushes(NOW)
    const buffer = bufferOf('c', 'u', 1_000)
    remember(flushes, buffer, 10)
    expect(flushes.forgetOver(NOW + 1_004)).to.deep.equal([])
    expect(flushes.take(buffer, 'g4', NOW)).to.equal(undefined)
    expect(flushes.take(buffer, 'g5', NOW + 5)).to.equal(NOW + 5)
    update(buffer, 'c', 100)
    expect(flushes.forgetOver(NOW + 200)).to.deep.equal([buffer])
    expect(flushes.has(buffer)).to.equal(false)
  })

  it('are forgotten when their buffer is deleted', () => {
    const flushes = new LastFlushes(NOW)
    const buffer = bufferOf('c', 'u', 86_400_000)
    remember(flushes, buffer, 10)
    update(buffer, 'c', 86_400_000, true)
    expect(flushes.forgetOver(NOW)).to.deep.equal([buffer])
  })

  it('are bounded: a buffer beyond its share forgets its own oldest ones', () => {
    const flushes = new LastFlushes(NOW, 1_000)
    const busy = bufferOf('c', 'busy')
    remember(flushes, busy, 10_000)
    expect(flushes.take(busy, 'g9999', NOW + 10_000)).to.equal(NOW + 9_999)
    expect(known(flushes, busy, 10_000)).to.be.within(500, 600)
  })

  it('of another customer are known however many one customer has', () => {
    const flushes = new LastFlushes(NOW, 1_000)
    for (let n = 0; n < 50; n++) remember(flushes, bufferOf('greedy', `${n}`), 1_000)
    const other = bufferOf('other', 'u')
    remember(flushes, other, 100)
    expect(known(flushes, other, 100)).to.equal(100)
  })

  it('of a quiet buffer stay when another one of its customer has too many', () => {
    const flushes = new LastFlushes(NOW, 1_000)
    const quiet = bufferOf('c', 'quiet')
    remember(flushes, quiet, 20)
    remember(flushes, bufferOf('c', 'busy'), 10_000)
    expect(known(flushes, quiet, 20)).to.equal(20)
  })
})
