import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { Wakes } from '../../../internal/shard/held/wakes.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

interface Target {
  readonly name: string
  wakeAt: number
}

describe('shard: wakes', () => {
  let clock: ManualClock
  let woken: string[]
  let wakes: Wakes<Target>

  beforeEach(() => {
    clock = new ManualClock()
    woken = []
    wakes = new Wakes(clock, ({ name }, now) => woken.push(`${name} at ${now}`))
  })

  const target = (name: string): Target => ({ name, wakeAt: Number.POSITIVE_INFINITY })

  it('come in the order of their times, each once', () => {
    for (const [name, at] of [
      ['late', 300],
      ['early', 100],
      ['middle', 200],
    ] as const)
      wakes.arm(target(name), at)
    for (let step = 0; step < 4; step++) clock.advance(100)
    expect(woken).to.deep.equal(['early at 100', 'middle at 200', 'late at 300'])
    expect(clock.pending).to.equal(0)
  })

  it('come at the time that was armed last, whether it is later or earlier', () => {
    const [later, earlier] = [target('later'), target('earlier')]
    wakes.arm(later, 100)
    wakes.arm(later, 300)
    wakes.arm(earlier, 300)
    wakes.arm(earlier, 200)
    clock.advance(100)
    expect(woken).to.deep.equal([])
    clock.advance(100)
    expect(woken).to.deep.equal(['earlier at 200'])
    clock.advance(100)
    expect(woken).to.deep.equal(['earlier at 200', 'later at 300'])
  })

  it('leave the target unarmed', () => {
    const one = target('one')
    wakes.arm(one, 100)
    expect(one.wakeAt).to.equal(100)
    clock.advance(100)
    expect(one.wakeAt).to.equal(Number.POSITIVE_INFINITY)
  })

  it('do not come after the stop', () => {
    wakes.arm(target('one'), 100)
    wakes.stop()
    wakes.arm(target('two'), 100)
    clock.advance(100)
    expect([woken, clock.pending]).to.deep.equal([[], 0])
  })
})
