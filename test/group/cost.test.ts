/** What many groups, and many items in one group, cost: bounds, not speeds. */
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Backlog } from '../../internal/group/backlog.ts'
import { step } from '../../internal/group/machine.ts'
import type { Effect, GroupItem } from '../../internal/group/model.ts'
import { createGroup } from '../../internal/group/state.ts'
import { defaultPolicy } from './notation.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
const AT = 1_763_000_000_000

/** Bytes of heap that `build` leaves behind, its result included. */
function heapLeftBy(build: () => unknown): number {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const kept = [build()]
  collectGarbage()
  return process.memoryUsage().heapUsed - before - kept.length
}

describe('group costs', () => {
  it('holds a group with one waiting item in 320 bytes', () => {
    const count = 20_000
    const items = Array.from({ length: count }, (_, index): GroupItem => ({ bytes: 1000, at: AT + index }))
    const bytes = heapLeftBy(() =>
      items.map(
        (item) => step(createGroup(defaultPolicy, item.at), { kind: 'item', at: item.at, item }).state,
      ),
    )
    expect(bytes / count).to.be.below(320)
  })

  // What is quadratic in the waiting items does not end before mocha's timeout.
  it('takes 100,000 items of one group, each a segment and a batch of its own', () => {
    const count = 100_000
    const policy = { ...defaultPolicy, maxItems: 1, maxGroupItems: 1 }
    const state = createGroup<GroupItem>({ ...policy, state: 'held' }, AT)
    for (let index = 0; index < count; index += 1)
      step(state, { kind: 'item', at: AT, item: { bytes: index, at: AT } })
    let { effects } = step(state, { kind: 'policy', at: AT, policy })
    for (let index = 0; index < count; index += 1) {
      const batch = sealedIn(effects)!
      expect([batch.segment, batch.bytes]).to.deep.equal([index, index])
      step(state, { kind: 'sealed', at: AT, batch, version: index + 1 })
      effects = step(state, { kind: 'result', at: AT, batch, result: 'delivered' }).effects
      step(state, { kind: 'settled', at: AT, batch })
    }
    expect(sealedIn(effects)).to.equal(undefined)
  })

  it('does not grow with the items that went through it', () => {
    const limits = { maxItems: 1, maxBytes: 1 }
    const bytes = heapLeftBy(() => {
      const backlog = new Backlog<GroupItem>()
      backlog.push({ bytes: 1, at: AT })
      for (let index = 0; index < 200_000; index += 1) {
        backlog.push({ bytes: 1, at: AT })
        backlog.take(limits)
      }
      return backlog
    })
    expect(bytes).to.be.below(100_000)
  })

  it('lets go of what was taken', async () => {
    const backlog = new Backlog<GroupItem>()
    const taken = fillAndTake(backlog)
    await setImmediate()
    collectGarbage()
    expect(taken.filter((item) => item.deref() !== undefined)).to.have.lengthOf(0)
    expect(backlog.size).to.equal(80)
  })
})

/** Pushes 100 items and takes 20 of them. */
function fillAndTake(backlog: Backlog<GroupItem>): WeakRef<GroupItem>[] {
  for (let index = 0; index < 100; index += 1) backlog.push({ bytes: 1, at: AT })
  return backlog.take({ maxItems: 20, maxBytes: 1000 }).items.map((item) => new WeakRef(item))
}

function sealedIn(effects: Effect<GroupItem>[]) {
  for (const effect of effects) if (effect.kind === 'seal') return effect.batch
  return undefined
}
