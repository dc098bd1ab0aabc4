import { expect } from 'chai'
import { describe, it } from 'mocha'

import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'

describe('the system clock', () => {
  const clock = systemClock()

  it('runs a task once, no earlier than asked', async () => {
    const began = clock.monotonic()
    await new Promise<void>((resolve) => clock.after(20, resolve))
    expect(clock.monotonic() - began).to.be.at.least(19)
  })

  it('does not run what was cancelled, nor at once what lies beyond the timers of the platform', async () => {
    const ran: string[] = []
    clock.after(1, () => ran.push('cancelled'))()
    const cancel = clock.after(2 ** 31 + 1, () => ran.push('in 25 days'))
    await new Promise<void>((resolve) => clock.after(10, resolve))
    cancel()
    expect(ran).to.deep.equal([])
  })
})

describe('the system’s randomness', () => {
  it('gives as many bytes as asked, and fractions below 1', () => {
    const random = systemRandomness()
    expect(random.bytes(16)).to.have.length(16)
    expect(random.bytes(16)).to.not.deep.equal(random.bytes(16))
    expect(random.fraction()).to.be.within(0, 1)
  })
})
