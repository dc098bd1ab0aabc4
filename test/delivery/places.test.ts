import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { ATTEMPT_PLACES, attemptPlaces } from '../../internal/delivery/attempt-places.ts'
import { Places } from '../../internal/delivery/places.ts'
import { TurnQueue } from '../../internal/delivery/queue.ts'

/** Queues of origins that share places. A start is noted as `<customer>@<queue>`; nothing ends by itself. */
class Origins {
  readonly places: Places
  readonly queues: TurnQueue[]
  readonly started: string[] = []
  readonly running: string[] = []

  constructor(count: number, atOnce: number, perCustomer: number, ofQueue = 64) {
    this.places = new Places({ atOnce, perCustomer })
    const limits = { atOnce: ofQueue, waiting: 10_000, waitingBytes: 1e9 }
    this.queues = Array.from({ length: count }, () => new TurnQueue(limits, this.places))
  }

  enter(customerId: string, at: number): void {
    const name = `${customerId}@${at}`
    const start = () => {
      this.started.push(name)
      this.running.push(name)
    }
    this.queues[at]!.enter({ customerId, flow: 'f', bytes: 1, start, refuse: () => {} })
  }

  /** The first attempt that runs, of `customerId` when it is given. */
  leave(customerId = ''): void {
    const at = this.running.findIndex((name) => name.startsWith(customerId))
    const [name] = at < 0 ? [] : this.running.splice(at, 1)
    if (name) this.queues[Number(name.split('@')[1])]!.leave({ customerId: name.split('@')[0]!, flow: 'f' })
  }

  get waiting(): number {
    return this.queues.reduce((sum, queue) => sum + queue.waiting, 0)
  }

  runningOf(customerId: string): number {
    return this.running.filter((name) => name.startsWith(customerId)).length
  }
}

describe('places that origins share', () => {
  it('bound a customer over all of them, and nobody else', () => {
    const origins = new Origins(10, 100, 20)
    for (let at = 0; at < 10; at++) for (let i = 0; i < 10; i++) origins.enter('a', at)
    expect([origins.running.length, origins.waiting]).to.deep.equal([20, 80])
    origins.enter('b', 0)
    expect(origins.started.at(-1)).to.equal('b@0')
  })

  it('are taken in turns by the origins of a customer', () => {
    const origins = new Origins(4, 100, 2)
    for (let at = 0; at < 4; at++) for (let i = 0; i < 3; i++) origins.enter('a', at)
    for (let i = 0; i < 12; i++) origins.leave()
    expect(origins.started.map((name) => name.split('@')[1]).join('')).to.equal('000123123123')
    expect([origins.running.length, origins.waiting]).to.deep.equal([0, 0])
  })

  it('go to those with little when many hold all of them', () => {
    const origins = new Origins(8, 16, 8)
    for (const customer of 'abcdefgh') for (let i = 0; i < 8; i++) origins.enter(customer, i)
    expect(origins.running.length).to.equal(16)
    origins.enter('late', 0)
    expect(origins.runningOf('late')).to.equal(0)
    for (let i = 0; i < 8; i++) origins.leave('a')
    expect(origins.runningOf('late')).to.equal(1)
  })

  it('wait for nobody whose attempts are withdrawn', () => {
    const { queues, places } = new Origins(2, 1, 1)
    const turn = { customerId: 'a', flow: 'f', bytes: 1, start: () => {}, refuse: () => {} }
    queues[0]!.enter({ ...turn })
    const waits = { ...turn, start: () => expect.fail('it was withdrawn') }
    queues[1]!.enter(waits)
    expect(queues[1]!.withdraw(waits)).to.equal(true)
    queues[0]!.leave(turn)
    expect(places.mayTake('a')).to.equal(true)
    queues[1]!.enter({ ...turn })
    expect(queues[1]!.running).to.equal(1)
  })

  it('let any number of turns end as soon as they start', () => {
    const { queues } = new Origins(2, 1, 1)
    let ended = 0
    const turn = (queue: TurnQueue) => ({
      customerId: 'a',
      flow: 'f',
      bytes: 1,
      start: () => {
        ended++
        queue.leave({ customerId: 'a', flow: 'f' })
      },
      refuse: () => {},
    })
    queues[0]!.enter({ ...turn(queues[0]!), start: () => {} })
    for (let i = 0; i < 5_000; i++) for (const queue of queues) queue.enter(turn(queue))
    queues[0]!.leave({ customerId: 'a', flow: 'f' })
    expect(ended).to.equal(10_000)
  })

  it('resume once what is parked, and nothing that was taken out again', () => {
    const places = new Places({ atOnce: 1, perCustomer: 1 })
    const resumed: string[] = []
    const waiterOf = (name: string) => ({ running: 0, resume: () => void resumed.push(name) })
    const withdrawn = waiterOf('withdrawn')
    places.take('a')
    places.park('b', withdrawn)
    places.unpark('b', withdrawn)
    for (const name of ['c', 'a']) places.park(name, waiterOf(name))
    places.leave('a')
    places.take('d')
    places.leave('d')
    expect(resumed).to.deep.equal(['c', 'a'])
  })

  it('throw when a customer leaves that holds none', () => {
    expect(() => new Places({ atOnce: 1, perCustomer: 1 }).leave('a')).to.throw('holds no place')
  })

  it('are never exceeded, and never free while a turn waits that could take one', () => {
    const steps = fc.array(fc.tuple(fc.constantFrom('+', '+', '-'), fc.constantFrom(...'abc'), fc.nat(2)), {
      maxLength: 200,
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 9 }),
        steps,
        (all, own, script) => {
          const origins = new Origins(3, all, own, 3)
          const entered = new Map<string, number>()
          for (const [step, customer, at] of script) {
            const name = `${customer}@${at}`
            if (step === '-') origins.leave(customer)
            else origins.enter(customer, at)
            if (step === '+') entered.set(name, (entered.get(name) ?? 0) + 1)
            expect(origins.running.length).to.be.at.most(all)
            expect(origins.runningOf(customer)).to.be.at.most(own)
            for (const [waits, count] of entered) expectNoneStartable(origins, waits, count)
          }
          while (origins.running.length > 0) origins.leave()
          expect(origins.waiting).to.equal(0)
        },
      ),
    )
  })
})

describe('the attempts at once of a process', () => {
  it('are no more than its files have room for', () => {
    expect(attemptPlaces(Number.POSITIVE_INFINITY)).to.deep.equal(ATTEMPT_PLACES)
    expect(attemptPlaces(1_048_576)).to.deep.equal(ATTEMPT_PLACES)
    expect(attemptPlaces(4_096)).to.deep.equal({ atOnce: 1_024, perCustomer: 256 })
    expect(attemptPlaces(3)).to.deep.equal({ atOnce: 1, perCustomer: 1 })
  })
})

/** Of the turns `<customer>@<queue>`, `entered` in all: none waits that both its queue and the places have room for. */
function expectNoneStartable(origins: Origins, name: string, entered: number): void {
  const [customer = '', at] = name.split('@')
  const begun = origins.started.filter((other) => other === name).length
  const here = origins.running.filter((other) => other === name).length
  if (begun === entered || !origins.places.mayTake(customer, here)) return
  expect(here).to.be.at.least(3 * (3 - origins.queues[Number(at)]!.running))
}
