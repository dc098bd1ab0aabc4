import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Places } from '../../internal/delivery/places.ts'
import { type Turn, TurnQueue } from '../../internal/delivery/queue.ts'
import type { Taker } from '../../internal/runtime/shared-budget.ts'

/** A queue whose starts and refusals are noted as `<flow><n>`. A flow is of `acme`, unless it is named `<customer>/<flow>`. */
function newQueue(connections: number, waiting = 1_000, waitingBytes = 1_000_000, places?: Places) {
  const queue = new TurnQueue({ atOnce: connections, waiting, waitingBytes }, places)
  const started: string[] = []
  const refused: string[] = []
  const counts = new Map<string, number>()
  const turn = (name: string, bytes = 1): Turn => {
    const n = (counts.get(name) ?? 0) + 1
    counts.set(name, n)
    return {
      ...takerOf(name),
      bytes,
      start: () => started.push(`${name}${n}`),
      refuse: () => refused.push(`${name}${n}`),
    }
  }
  const enter = (name: string, bytes = 1) => queue.enter(turn(name, bytes))
  return { queue, started, refused, turn, enter, leave: (name: string) => queue.leave(takerOf(name)) }
}

function takerOf(name: string): Taker {
  const [first = '', second] = name.split('/')
  return second === undefined ? { customerId: 'acme', flow: first } : { customerId: first, flow: second }
}

describe('the queue of an origin', () => {
  it('starts at once while connections are free, then in order as they become free', () => {
    const { queue, started, enter } = newQueue(2)
    for (let i = 0; i < 4; i++) enter('a')
    expect(started).to.deep.equal(['a1', 'a2'])
    queue.leave(takerOf('a'))
    expect(started).to.deep.equal(['a1', 'a2', 'a3'])
    expect([queue.running, queue.waiting]).to.deep.equal([2, 1])
  })

  it('lets flows take turns, however much one of them brings', () => {
    const { queue, started, enter } = newQueue(1)
    enter('a')
    for (let i = 0; i < 5; i++) enter('a')
    enter('b')
    enter('c')
    enter('b')
    for (const flow of ['a', 'a', 'b', 'c', 'a', 'b']) queue.leave(takerOf(flow))
    expect(started).to.deep.equal(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  it('keeps connections from flows that hang', () => {
    const { queue, started, enter } = newQueue(64)
    for (let i = 0; i < 100; i++) enter('hangs')
    expect(queue.running).to.equal(48)
    for (let i = 0; i < 100; i++) enter('hangs too ')
    expect(queue.running).to.equal(60)
    enter('other')
    expect(started.at(-1)).to.equal('other1')
  })

  it('gives what becomes free to flows with little when flows that hang have taken all', () => {
    const { queue, started, enter } = newQueue(64)
    const hanging = Array.from('ABCDEFGHIJ')
    for (const flow of hanging) for (let i = 0; i < 100; i++) enter(flow)
    expect(queue.running).to.equal(64)
    const before = started.length
    enter('newcomer')
    expect(started.length).to.equal(before)
    for (let i = 0; i < 8; i++) queue.leave(takerOf('A'))
    expect(started.slice(before)).to.have.members(['D2', 'E1', 'F1', 'G1', 'H1', 'I1', 'J1', 'newcomer1'])
  })

  it('gives one customer no more than its bound, and others what it leaves', () => {
    const started: string[] = []
    const queue = new TurnQueue({
      atOnce: 10,
      perCustomer: 2,
      waiting: 3,
      waitingBytes: Number.POSITIVE_INFINITY,
    })
    const enter = (name: string) =>
      queue.enter({ ...takerOf(name), bytes: 0, start: () => started.push(name), refuse: () => {} })
    expect([1, 2, 3, 4, 5].map(() => enter('a/f'))).to.deep.equal([true, true, true, true, false])
    expect(enter('b/f'), 'what waits of another keeps nobody out').to.equal(true)
    expect(started).to.deep.equal(['a/f', 'a/f', 'b/f'])
    queue.leave(takerOf('a/f'))
    expect(started).to.deep.equal(['a/f', 'a/f', 'b/f', 'a/f'])
  })

  it('uses all of few connections', () => {
    for (const connections of [1, 2, 3]) {
      const { queue, enter } = newQueue(connections)
      for (let i = 0; i < 10; i++) enter('a')
      expect(queue.running).to.equal(connections)
    }
  })

  it('is bounded by attempts and by bytes, yet takes one large body of each customer', () => {
    const { queue, enter } = newQueue(1, 3, 10)
    enter('a', 1_000)
    expect([enter('a', 1_000), enter('b', 1), enter('a', 1)]).to.deep.equal([true, false, false])
    expect([enter('other/c', 1_000), enter('other/d', 1)]).to.deep.equal([true, false])
    expect(queue.waiting).to.equal(2)
    const small = newQueue(1, 3, 10)
    expect([1, 2, 3, 4, 5].map(() => small.enter('a'))).to.deep.equal([true, true, true, false, false])
    small.leave('a')
    expect(small.enter('a')).to.equal(true)
  })

  it('takes a customer and a buffer of whom nothing waits, whatever waits of others', () => {
    const { queue, enter } = newQueue(1, 1_000)
    for (let flow = 0; flow < 100; flow++) for (let i = 0; i < 100; i++) enter(`greedy/${flow}`)
    expect(queue.waiting).to.be.within(750, 850)
    expect([enter('greedy/0'), enter('greedy/another')]).to.deep.equal([false, true])
    let taken = 0
    while (enter('quiet/a')) taken++
    expect(taken).to.be.above(50)
    expect([enter('quiet/b'), enter('third/a')]).to.deep.equal([true, true])
  })

  it('lets customers take turns, and the buffers of each among themselves', () => {
    const { started, enter, leave } = newQueue(1)
    enter('greedy/a')
    for (const flow of 'abcde') for (let i = 0; i < 3; i++) enter(`greedy/${flow}`)
    for (const name of ['quiet/x', 'quiet/x', 'quiet/y']) enter(name)
    for (let i = 0; i < 8; i++) leave(started.at(-1)!.slice(0, -1))
    expect(started.slice(1)).to.deep.equal([
      'greedy/a2',
      'quiet/x1',
      'greedy/b1',
      'quiet/y1',
      'greedy/c1',
      'quiet/x2',
      'greedy/d1',
      'greedy/e1',
    ])
  })

  it('gives one customer all, and gives what becomes free to another one from the time when it comes', () => {
    const { queue, started, enter, leave } = newQueue(64)
    for (const flow of 'abcdefghijklmnop') for (let i = 0; i < 20; i++) enter(`greedy/${flow}`)
    expect(queue.running).to.equal(64)
    const hanging = started.map((name) => name.replace(/\d+$/, ''))
    for (let i = 0; i < 30; i++) enter('quiet/x')
    for (const name of hanging.slice(0, 12)) leave(name)
    expect([queue.running, started.length - 64]).to.deep.equal([61, 9])
    expect(started.slice(64).every((name) => name.startsWith('quiet/'))).to.equal(true)
  })

  it('starts a newcomer at once although the queue is full of a flow at its share', () => {
    const { started, enter } = newQueue(4, 2)
    for (let i = 0; i < 6; i++) enter('a')
    expect(enter('b')).to.equal(true)
    expect(started).to.deep.equal(['a1', 'a2', 'a3', 'b1'])
  })

  it('withdraws only what waits, and refuses the rest when it is emptied', () => {
    const { queue, started, refused, turn } = newQueue(1)
    const [first, second, third] = [turn('a'), turn('a'), turn('b')]
    for (const each of [first, second, third]) queue.enter(each)
    expect([queue.withdraw(first), queue.withdraw(second), queue.withdraw(second)]).to.deep.equal([
      false,
      true,
      false,
    ])
    queue.empty('closing')
    queue.leave(takerOf('a'))
    expect([started, refused, queue.running, queue.waiting]).to.deep.equal([['a1'], ['b1'], 0, 0])
  })

  it('lets any number of turns end as soon as they start', () => {
    const queue = new TurnQueue({ atOnce: 1, waiting: 100_000, waitingBytes: 1e9 })
    let ended = 0
    const start = () => {
      ended++
      queue.leave(takerOf('a'))
    }
    queue.enter({ ...takerOf('a'), bytes: 1, start: () => {}, refuse: () => {} })
    for (let i = 0; i < 50_000; i++) queue.enter({ ...takerOf('a'), bytes: 1, start, refuse: () => {} })
    queue.leave(takerOf('a'))
    expect([ended, queue.running, queue.waiting]).to.deep.equal([50_000, 0, 0])
  })

  it('takes flows of two customers for two, whatever their names', () => {
    const { started, enter, leave } = newQueue(1)
    for (const name of ['a/f', 'a/f', 'a/f', 'b/f']) enter(name)
    leave('a/f')
    leave(started.at(-1)!.startsWith('a') ? 'a/f' : 'b/f')
    expect(started).to.have.members(['a/f1', 'a/f2', 'b/f1'])
  })

  it('throws when a flow leaves that does not run', () => {
    expect(() => newQueue(1).queue.leave(takerOf('a'))).to.throw('no running turn')
  })

  it('never exceeds its connections, never leaves a startable turn waiting, keeps each flow in order', () => {
    const steps = fc.array(fc.oneof(fc.constantFrom('+a', '+b', '+c'), fc.constantFrom('-a', '-b', '-c')))
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), steps, (connections, script) => {
        const { queue, started, enter } = newQueue(connections)
        const running = new Map([
          ['a', 0],
          ['b', 0],
          ['c', 0],
        ])
        let seen = 0
        for (const step of script) {
          const flow = step.charAt(1)
          if (step.startsWith('+')) enter(flow)
          else if (running.get(flow)! > 0) {
            running.set(flow, running.get(flow)! - 1)
            queue.leave(takerOf(flow))
          }
          for (; seen < started.length; seen++)
            running.set(started[seen]!.charAt(0), running.get(started[seen]!.charAt(0))! + 1)
          expect(queue.running)
            .to.equal([...running.values()].reduce((a, b) => a + b))
            .and.to.be.at.most(connections)
          const free = connections - queue.running
          if (queue.waiting > 0)
            expect([...running.values()].some((count) => count >= 3 * free)).to.equal(true)
        }
        for (const flow of 'abc') {
          const order = started.filter((name) => name.startsWith(flow)).map((name) => Number(name.slice(1)))
          expect(order).to.deep.equal(order.map((_, index) => index + 1))
        }
      }),
    )
  })
})
