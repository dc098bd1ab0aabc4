import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type ChargeAnswer, ChargeQueue, withoutCharges } from '../../internal/billing/charge-queue.ts'

describe('billing: the charges of a customer', () => {
  function queueOf(...charges: [string, number][]) {
    const queue = new ChargeQueue('customer')
    const answers: (ChargeAnswer | Error | undefined)[] = []
    for (const [bufferUid, credits] of charges) add(queue, answers, bufferUid, credits)
    return { queue, answers }
  }

  function add(
    queue: ChargeQueue,
    answers: (ChargeAnswer | Error | undefined)[],
    bufferUid: string,
    credits: number,
    since = 0,
  ): void {
    const index = answers.push(undefined) - 1
    const answer = (value: ChargeAnswer | Error) => {
      expect(answers[index], 'answered twice').to.equal(undefined)
      answers[index] = value
    }
    queue.add({ bufferUid, credits, since, answer, fail: answer, givenUp: false })
  }

  it('puts equal neighbours into one run and keeps the order', () => {
    const { queue } = queueOf(['a', 1], ['a', 1], ['b', 1], ['a', 1], ['a', 2])
    queue.refund('c', 5)
    queue.refund('c', 2)
    queue.settle(9, 0)
    expect(queue.takeOff(0).statement).to.deep.equal({
      customerId: 'customer',
      number: 1,
      buffers: ['a', 'b', 'c'],
      runs: { buffer: [1, 2, 1, 1], credits: [1, 1, 1, 2], count: [2, 1, 1, 1] },
      refunds: { credits: [0, 0, 7], items: [0, 0, 2] },
      spent: { credits: [0, 0, 0], items: [0, 0, 0] },
      settled: 9,
      giveBack: 0,
      take: 0,
    })
  })

  it('has one statement in flight, and numbers them without gaps', () => {
    const { queue } = queueOf(['a', 1])
    expect(queue.takeOff(0).statement.number).to.equal(1)
    expect(() => queue.takeOff(0)).to.throw('in flight')
    queue.land({ open: true, granted: 1, balance: 0, taken: 0, heldByOthers: 0 }, 0, 0)
    queue.refund('a', 1)
    expect(queue.takeOff(0).statement.number).to.equal(2)
  })

  it('refuses what the balance cannot pay; what it can pay waits for the next statement', () => {
    const { queue, answers } = queueOf(['a', 1], ['a', 5], ['a', 3], ['a', 4])
    queue.takeOff(0)
    queue.land({ open: true, granted: 1, balance: 3, taken: 0, heldByOthers: 0 }, 0, 0)
    const refused = { paid: false, balance: 3 }
    expect(answers).to.deep.equal([{ paid: true }, refused, undefined, refused])
    expect(queue.takeOff(0).statement.runs).to.deep.equal({ buffer: [1], credits: [3], count: [1] })
  })

  it('what waits again comes before what arrived meanwhile', () => {
    const { queue, answers } = queueOf(['a', 5], ['a', 3])
    queue.takeOff(0)
    add(queue, answers, 'a', 2)
    queue.land({ open: true, granted: 0, balance: 3, taken: 0, heldByOthers: 0 }, 0, 0)
    expect(queue.takeOff(0).statement.runs.credits).to.deep.equal([3, 2])
  })

  it('waits a while for what other nodes hold in advance, and refuses what they cannot pay either', () => {
    const { queue, answers } = queueOf(['a', 5], ['a', 9])
    queue.takeOff(0)
    queue.land({ open: true, granted: 0, balance: 2, taken: 0, heldByOthers: 3 }, 400, 0)
    expect(answers).to.deep.equal([undefined, { paid: false, balance: 2 }])
    expect(queue.due(400, 0)).to.equal(false)
    expect(queue.due(450, 0)).to.equal(true)
    expect(queue.takeOff(450).statement.runs.credits).to.deep.equal([5])
    queue.land({ open: true, granted: 0, balance: 2, taken: 0, heldByOthers: 3 }, 501, 0)
    expect(answers[0]).to.deep.equal({ paid: false, balance: 2 })
  })

  it('pays in advance under load, but overtakes nobody who waits', () => {
    const { queue, answers } = queueOf()
    for (let i = 0; i < 20; i++) {
      expect(queue.pays('a', 1, 1)).to.equal(false)
      add(queue, answers, 'a', 1)
    }
    expect(queue.takeOff(1).statement).to.include({ take: 60, giveBack: 0 })
    queue.land({ open: true, granted: 20, balance: 9_000, taken: 60, heldByOthers: 0 }, 1, 0)
    expect(queue.pays('b', 2, 2)).to.equal(true)
    add(queue, answers, 'a', 100)
    expect(queue.pays('b', 2, 2)).to.equal(false)
    const { buffers, spent, runs, giveBack } = queue.takeOff(2).statement
    expect(buffers).to.deep.equal(['a', 'b'])
    expect(spent).to.deep.equal({ credits: [0, 2], items: [0, 1] })
    expect(runs.credits).to.deep.equal([100])
    expect(giveBack).to.equal(58)
  })

  it('credits back what comes back with the next report, when there is to be one', () => {
    const { queue, answers } = queueOf()
    for (let i = 0; i < 20; i++) if (!queue.pays('a', 1, 1)) add(queue, answers, 'a', 1)
    queue.takeOff(1)
    queue.land({ open: true, granted: 20, balance: 9_000, taken: 60, heldByOthers: 0 }, 1, 0)
    queue.pays('a', 1, 2)
    queue.refund('a', 1)
    expect(queue.due(2, 500)).to.equal(false)
    queue.hurry()
    expect(queue.due(2, 500)).to.equal(true)
    expect(queue.takeOff(2).statement.refunds).to.deep.equal({ credits: [1], items: [1] })
  })

  it('refuses without asking only what cannot be paid, and only for a while', () => {
    const { queue } = queueOf(['a', 5])
    queue.takeOff(0)
    queue.land({ open: true, granted: 0, balance: 3, taken: 0, heldByOthers: 0 }, 0, 100)
    expect(queue.refuses(4, 99)).to.equal(3)
    expect(queue.refuses(3, 99)).to.equal(undefined)
    expect(queue.refuses(4, 100)).to.equal(undefined)
  })

  it('forgets a refusal when the balance is raised, also one that was on its way', () => {
    const { queue, answers } = queueOf(['a', 5])
    queue.takeOff(0)
    queue.land({ open: true, granted: 0, balance: 3, taken: 0, heldByOthers: 0 }, 0, 100)
    queue.raised()
    expect(queue.refuses(4, 1)).to.equal(undefined)
    add(queue, answers, 'a', 5)
    queue.takeOff(0)
    queue.raised()
    queue.land({ open: true, granted: 0, balance: 3, taken: 0, heldByOthers: 0 }, 0, 100)
    expect(queue.refuses(4, 1)).to.equal(undefined)
    queue.refund('a', 1)
    expect(queue.refuses(4, 1)).to.equal(undefined)
  })

  it('credits back what is paid after its caller was told "unavailable"', () => {
    const { queue, answers } = queueOf(['a', 2], ['b', 3])
    queue.takeOff(0)
    add(queue, answers, 'b', 4, 10)
    queue.giveUp(5, () => new Error('away'))
    queue.giveUp(5, () => new Error('away'))
    expect(answers[0]).to.be.an('error')
    expect(answers[2]).to.equal(undefined)
    queue.land({ open: true, granted: 1, balance: 9, taken: 0, heldByOthers: 0 }, 0, 0)
    const next = queue.takeOff(0).statement
    expect(next.buffers).to.deep.equal(['b', 'a'])
    expect(next.refunds).to.deep.equal({ credits: [0, 2], items: [0, 1] })
    expect(next.runs.credits).to.deep.equal([4])
  })

  it('takes what has not left out of the queue when it is given up', () => {
    const { queue } = queueOf(['a', 2])
    queue.giveUp(0, () => new Error('away'))
    expect(queue.idle).to.equal(true)
  })

  it('a repetition without charges keeps the rest', () => {
    const { queue } = queueOf(['a', 2])
    queue.refund('a', 1)
    queue.settle(3, 0)
    const statement = queue.takeOff(0).statement
    expect(withoutCharges(statement)).to.deep.equal({
      ...statement,
      runs: { buffer: [], credits: [], count: [] },
    })
  })
})
