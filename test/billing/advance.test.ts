import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { Advance, REPORT_MS } from '../../internal/billing/advance.ts'

const RICH = 1_000_000
const usual = { short: false, ending: false }

describe('billing: credits in advance', () => {
  /** An advance that has seen `items` charges of one credit, and holds what it asked for. */
  function loaded(items: number, free = RICH): Advance {
    const advance = new Advance()
    for (let i = 0; i < items; i++) advance.see(1, 1)
    advance.grant(advance.report(1, usual).take, free)
    return advance
  }

  it('takes nothing for a few charges', () => {
    const advance = loaded(15)
    expect(advance.active).to.equal(false)
    expect(advance.spend('a', 1, 1)).to.equal(false)
  })

  it('under load holds three times what was asked for in a report’s time, and pays from it', () => {
    const advance = loaded(100)
    for (let i = 0; i < 300; i++) expect(advance.spend(i % 2 ? 'a' : 'b', 1, 2), String(i)).to.equal(true)
    expect(advance.spend('a', 1, 2)).to.equal(false)
    const { spent, giveBack } = advance.report(3, usual)
    expect(Object.fromEntries(spent)).to.deep.equal({
      a: { credits: 150, items: 150 },
      b: { credits: 150, items: 150 },
    })
    expect(giveBack).to.equal(0)
    expect(advance.report(3, usual).spent.size).to.equal(0)
  })

  it('is due when the oldest spending is old enough, or when it runs low', () => {
    const advance = loaded(100)
    advance.spend('a', 1, 10)
    expect(advance.due(10 + REPORT_MS - 1)).to.equal(false)
    expect(advance.due(10 + REPORT_MS)).to.equal(true)
    for (let i = 0; i < 199; i++) advance.spend('a', 1, 10)
    expect(advance.due(10)).to.equal(false)
    advance.spend('a', 1, 10)
    expect(advance.due(10)).to.equal(true)
  })

  it('goes back when the load has ended, when it could not pay a charge, and at the end', () => {
    const idle = loaded(100)
    expect(idle.due(1 + 3 * REPORT_MS)).to.equal(true)
    expect(idle.report(1 + 3 * REPORT_MS, usual)).to.include({ giveBack: 300, take: 0 })
    expect(idle.active).to.equal(false)
    expect(loaded(100).report(2, { short: true, ending: false })).to.include({ giveBack: 300, take: 300 })
    expect(loaded(100).report(2, { short: false, ending: true })).to.include({ giveBack: 300, take: 0 })
  })

  it('goes back where the balance is low', () => {
    const advance = loaded(100, 6_400)
    expect(advance.report(2, usual).giveBack).to.equal(300 - 2 * 104)
    advance.grant(0, 0)
    const { giveBack, take } = advance.report(2, usual)
    expect([giveBack, take]).to.deep.equal([208 - 2 * 3, 0])
  })

  it('does not ask again at once for what was not granted', () => {
    const advance = new Advance()
    for (let i = 0; i < 100; i++) advance.see(1, 1)
    expect(advance.report(1, usual).take).to.equal(300)
    advance.grant(9, 600)
    for (let i = 0; i < 6; i++) advance.spend('a', 1, 2)
    expect(advance.due(2)).to.equal(false)
  })

  it('loses and invents no credit, whatever happens', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('charge' as const), credits: fc.integer({ min: 1, max: 40 }) }),
      fc.record({
        kind: fc.constant('report' as const),
        short: fc.boolean(),
        free: fc.integer({ min: 0, max: 9_000 }),
      }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 120 }) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const advance = new Advance()
        let [now, granted, paid, reported, back] = [0, 0, 0, 0, 0]
        const report = (short: boolean, ending: boolean, free: number) => {
          const { spent, giveBack, take } = advance.report(now, { short, ending })
          for (const { credits } of spent.values()) reported += credits
          back += giveBack
          const taken = Math.min(take, Math.floor(free / 64))
          granted += taken
          advance.grant(taken, free - taken)
        }
        for (const each of steps) {
          if (each.kind === 'wait') now += each.ms
          else if (each.kind === 'report') report(each.short, false, each.free)
          else {
            advance.see(each.credits, now)
            if (advance.spend('a', each.credits, now)) paid += each.credits
          }
          expect(paid + back).to.be.at.most(granted)
        }
        report(false, true, 0)
        expect(reported).to.equal(paid)
        expect(paid + back).to.equal(granted)
        expect(advance.active).to.equal(false)
      }),
    )
  })
})
