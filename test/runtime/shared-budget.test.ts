import { expect } from 'chai'
import { describe, it } from 'mocha'
import { SharedBudget } from '../../internal/runtime/shared-budget.ts'

/** What `<customer>/<flow>` holds once it finds no more room, taking `amount` each time. */
function fill(budget: SharedBudget, name: string, amount: number): number {
  const taker = takerOf(name)
  let taken = 0
  for (; budget.hasRoom(taker); taken += amount) budget.take(taker, amount)
  return taken
}

function takerOf(name: string): { customerId: string; flow: string } {
  const [customerId = '', flow = ''] = name.split('/')
  return { customerId, flow }
}

describe('a budget that customers share', () => {
  it('leaves room to other flows of a customer, and to other customers', () => {
    const budget = new SharedBudget(1_000)
    expect(fill(budget, 'a/f', 1)).to.equal(600)
    expect(fill(budget, 'a/g', 1)).to.be.within(100, 150)
    expect(budget.hasRoom(takerOf('a/h')), 'of the same customer').to.equal(true)
    expect(fill(budget, 'b/f', 1)).to.be.above(100)
  })

  it('gives a customer three quarters at most', () => {
    const budget = new SharedBudget(1_000)
    let taken = 0
    for (let flow = 0; flow < 300; flow++) taken += fill(budget, `a/${flow}`, 1)
    expect(taken).to.be.within(700, 750)
    expect(budget.hasRoom(takerOf('a/another'))).to.equal(false)
    expect(budget.hasRoom(takerOf('b/f'))).to.equal(true)
  })

  it('takes one of each customer, however large', () => {
    const budget = new SharedBudget(10)
    for (const name of ['a/f', 'b/f', 'c/f']) expect(fill(budget, name, 100)).to.equal(100)
  })

  it('has room again for what was given back', () => {
    const budget = new SharedBudget(10)
    const taken = fill(budget, 'a/f', 1)
    expect(budget.hasRoom(takerOf('a/f'))).to.equal(false)
    budget.leave(takerOf('a/f'), taken)
    expect(fill(budget, 'a/f', 1)).to.equal(taken)
    expect(() => budget.leave(takerOf('a/g'), 1)).to.throw('does not hold')
  })
})
