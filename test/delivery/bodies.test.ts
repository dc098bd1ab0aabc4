import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Bodies } from '../../internal/delivery/bodies.ts'

/** As many bodies of `bytes` as `<customer>/<flow>` finds room for. */
function fill(bodies: Bodies, name: string, bytes: number): number {
  const taker = takerOf(name)
  let taken = 0
  for (; bodies.hasRoom(taker); taken += bytes) bodies.take(taker, bytes)
  return taken
}

function takerOf(name: string): { customerId: string; flow: string } {
  const [customerId = '', flow = ''] = name.split('/')
  return { customerId, flow }
}

describe('the bodies of attempts', () => {
  it('leave room to other buffers of a customer, and to other customers', () => {
    const bodies = new Bodies(1_000)
    expect(fill(bodies, 'a/f', 1)).to.equal(600)
    expect(fill(bodies, 'a/g', 1)).to.be.within(100, 150)
    expect(bodies.hasRoom(takerOf('a/h')), 'of the same customer').to.equal(true)
    expect(fill(bodies, 'b/f', 1)).to.be.above(100)
  })

  it('of a customer take three quarters at most', () => {
    const bodies = new Bodies(1_000)
    let taken = 0
    for (let flow = 0; flow < 300; flow++) taken += fill(bodies, `a/${flow}`, 1)
    expect(taken).to.be.within(700, 750)
    expect(bodies.hasRoom(takerOf('a/another'))).to.equal(false)
    expect(bodies.hasRoom(takerOf('b/f'))).to.equal(true)
  })

  it('are one at least of each customer, however large', () => {
    const bodies = new Bodies(10)
    for (const name of ['a/f', 'b/f', 'c/f']) expect(fill(bodies, name, 100)).to.equal(100)
  })

  it('give back what is over', () => {
    const bodies = new Bodies(10)
    const taken = fill(bodies, 'a/f', 1)
    expect(bodies.hasRoom(takerOf('a/f'))).to.equal(false)
    bodies.leave(takerOf('a/f'), taken)
    expect(fill(bodies, 'a/f', 1)).to.equal(taken)
    expect(() => bodies.leave(takerOf('a/g'), 1)).to.throw('does not hold')
  })
})
