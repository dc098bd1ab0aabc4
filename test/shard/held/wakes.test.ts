import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { Wakes } from '../../../internal/shard/held/wakes.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { seededFractions } from '../../support/seeded.ts'

interface Target {
  readonly name: string
  wakeAt: number
  wakeIndex: number
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

  const target = (name: string): Target => ({ name, wakeAt: Number.POSITIVE_INFINITY, wakeIndex: -1 })

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

  it('come 500 a turn when many are due: a process that stood still has other work, too', () => {
    for (let n = 0; n < 1_200; n++) wakes.arm(target(`${n}`), 100)
    const counts = Array.from({ length: 4 }, () => {
      clock.advance(woken.length === 0 ? 100 : 0)
      return woken.length
    })
    expect(counts).to.deep.equal([500, 1_000, 1_200, 1_200])
    expect(clock.pending).to.equal(0)
  })

  it('leave the target unarmed', () => {
    const one = target('one')
    wakes.arm(one, 100)
    expect(one.wakeAt).to.equal(100)
    clock.advance(100)
    expect(one.wakeAt).to.equal(Number.POSITIVE_INFINITY)
  })

  it('do not come once disarmed, and nothing of them is left', () => {
    const targets = Array.from({ length: 100 }, (_, n) => target(`${n}`))
    for (const [n, one] of targets.entries()) wakes.arm(one, 1_000 + ((n * 37) % 100))
    for (const one of targets) if (one.name !== '50') wakes.disarm(one)
    expect([wakes.size, targets[0]!.wakeAt]).to.deep.equal([1, Number.POSITIVE_INFINITY])
    clock.advance(1_100)
    expect(woken.map((text) => text.split(' ')[0])).to.deep.equal(['50'])
  })

  it('stand once for each target, however often it is armed', () => {
    const one = target('one')
    for (let at = 1_000; at > 100; at--) wakes.arm(one, at)
    expect(wakes.size).to.equal(1)
  })

  it('come in order while some are armed anew and others leave', () => {
    const fractions = seededFractions(7)
    const targets = Array.from({ length: 300 }, (_, n) => target(`${n}`))
    for (let round = 0; round < 3_000; round++) {
      const one = targets[Math.floor(fractions() * targets.length)]!
      if (fractions() < 0.3) wakes.disarm(one)
      else wakes.arm(one, 1 + Math.floor(fractions() * 1_000))
    }
    const armed = targets.filter(({ wakeAt }) => wakeAt < Number.POSITIVE_INFINITY)
    const expected = armed.map(({ wakeAt }) => wakeAt).sort((one, other) => one - other)
    expect(expected).to.have.length.above(100)
    for (let ms = 0; ms < 1_000; ms++) clock.advance(1)
    expect(woken.map((text) => Number(text.split(' at ')[1]))).to.deep.equal(expected)
    expect([wakes.size, clock.pending]).to.deep.equal([0, 0])
  })

  describe('that were armed while the clock was ahead', () => {
    const DAY_MS = 86_400_000

    it('may be late once it is set back, until they are armed anew', () => {
      const one = target('one')
      clock.suspend(DAY_MS)
      wakes.arm(one, clock.now() + 1_000)
      expect(wakes.mayBeLate()).to.equal(false)
      clock.suspend(-DAY_MS)
      expect([wakes.mayBeLate(), wakes.mayBeLate()]).to.deep.equal([true, false])
      wakes.arm(one, clock.now() + 1_000)
      clock.advance(1_000)
      expect([woken, wakes.mayBeLate()]).to.deep.equal([['one at 1000'], false])
    })

    it('are the only ones: time that passes makes no wake late', () => {
      wakes.arm(target('one'), DAY_MS)
      clock.suspend(DAY_MS)
      expect(wakes.mayBeLate()).to.equal(false)
      clock.suspend(-DAY_MS)
      clock.advance(1_000)
      expect(wakes.mayBeLate()).to.equal(false)
    })
  })

  it('do not come after the stop', () => {
    wakes.arm(target('one'), 100)
    wakes.stop()
    wakes.arm(target('two'), 100)
    clock.advance(100)
    expect([woken, clock.pending]).to.deep.equal([[], 0])
  })
})
