import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Semaphore } from '../../internal/runtime/semaphore.ts'

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('runtime: a semaphore', () => {
  it('gives so many slots at once and no more', () => {
    const slots = new Semaphore(2)
    expect([slots.tryAcquire(), slots.tryAcquire(), slots.tryAcquire()]).to.deep.equal([true, true, false])
    slots.release()
    expect(slots.held).to.equal(1)
    expect(slots.tryAcquire()).to.equal(true)
  })

  it('hands a released slot to whoever waits the longest, past everybody who comes in between', async () => {
    const slots = new Semaphore(1)
    const order: string[] = []
    await slots.acquire()
    for (const name of ['first', 'second']) void slots.acquire().then(() => order.push(name))
    slots.release()
    // The first of them has not run yet, but the slot is its own.
    expect(slots.tryAcquire()).to.equal(false)
    await settled()
    expect(order).to.deep.equal(['first'])
    slots.release()
    await settled()
    expect(order).to.deep.equal(['first', 'second'])
    slots.release()
    expect(slots.held).to.equal(0)
  })

  it('never has more holders than slots, however they come and go', async () => {
    const slots = new Semaphore(3)
    let running = 0
    let most = 0
    const work = async (turns: number) => {
      await slots.acquire()
      most = Math.max(most, ++running)
      for (let turn = 0; turn < turns; turn++) await null
      running--
      slots.release()
    }
    await Promise.all(Array.from({ length: 50 }, (_, n) => work(n % 5)))
    expect({ most, held: slots.held }).to.deep.equal({ most: 3, held: 0 })
  })
})
