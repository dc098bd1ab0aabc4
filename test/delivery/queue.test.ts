import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { type Turn, TurnQueue } from '../../internal/delivery/queue.ts'

/** A queue whose starts and refusals are noted as `<flow><n>`. */
function newQueue(connections: number, waiting = 1_000, waitingBytes = 1_000_000) {
  const queue = new TurnQueue({ atOnce: connections, waiting, waitingBytes })
  const started: string[] = []
  const refused: string[] = []
  const counts = new Map<string, number>()
  const turn = (flow: string, bytes = 1): Turn => {
    const n = (counts.get(flow) ?? 0) + 1
    counts.set(flow, n)
    return {
      flow,
      bytes,
      start: () => started.push(`${flow}${n}`),
      refuse: () => refused.push(`${flow}${n}`),
    }
  }
  return { queue, started, refused, turn, enter: (flow: string, bytes = 1) => queue.enter(turn(flow, bytes)) }
}

describe('the queue of an origin', () => {
  it('starts at once while connections are free, then in order as they become free', () => {
    const { queue, started, enter } = newQueue(2)
    for (let i = 0; i < 4; i++) enter('a')
    expect(started).to.deep.equal(['a1', 'a2'])
    queue.leave('a')
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
    for (const flow of ['a', 'a', 'b', 'c', 'a', 'b']) queue.leave(flow)
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
    for (let i = 0; i < 8; i++) queue.leave('A')
    expect(started.slice(before)).to.have.members(['D2', 'E1', 'F1', 'G1', 'H1', 'I1', 'J1', 'newcomer1'])
  })

  it('gives one flow no more than its bound, and others what it leaves', () => {
    const started: string[] = []
    const queue = new TurnQueue({ atOnce: 10, perFlow: 2, waiting: 3, waitingBytes: 0 })
    const enter = (flow: string) =>
      queue.enter({ flow, bytes: 0, start: () => started.push(flow), refuse: () => {} })
    expect([1, 2, 3, 4, 5, 6].map(() => enter('a'))).to.deep.equal([true, true, true, true, true, false])
    expect(enter('b'), 'what waits of another keeps nobody out').to.equal(true)
    expect(started).to.deep.equal(['a', 'a', 'b'])
    queue.leave('a')
    expect(started).to.deep.equal(['a', 'a', 'b', 'a'])
  })

  it('uses all of few connections', () => {
    for (const connections of [1, 2, 3]) {
      const { queue, enter } = newQueue(connections)
      for (let i = 0; i < 10; i++) enter('a')
      expect(queue.running).to.equal(connections)
    }
  })

  it('is bounded by attempts and by bytes, yet takes one large body', () => {
    const { queue, enter } = newQueue(1, 3, 10)
    enter('a', 1_000)
    expect([enter('a', 1_000), enter('b', 1)]).to.deep.equal([true, false])
    const small = newQueue(1, 3, 10)
    expect([1, 2, 3, 4, 5].map(() => small.enter('a'))).to.deep.equal([true, true, true, true, false])
    small.queue.leave('a')
    expect(small.enter('a')).to.equal(true)
    expect(queue.waiting).to.equal(1)
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
    queue.leave('a')
    expect([started, refused, queue.running, queue.waiting]).to.deep.equal([['a1'], ['b1'], 0, 0])
  })

  it('lets any number of turns end as soon as they start', () => {
    const queue = new TurnQueue({ atOnce: 1, waiting: 100_000, waitingBytes: 1e9 })
    let ended = 0
    const start = () => {
      ended++
      queue.leave('a')
    }
    queue.enter({ flow: 'a', bytes: 1, start: () => {}, refuse: () => {} })
    for (let i = 0; i < 50_000; i++) queue.enter({ flow: 'a', bytes: 1, start, refuse: () => {} })
    queue.leave('a')
    expect([ended, queue.running, queue.waiting]).to.deep.equal([50_000, 0, 0])
  })

  it('throws when a flow leaves that does not run', () => {
    expect(() => newQueue(1).queue.leave('a')).to.throw('no running turn')
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
            queue.leave(flow)
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
