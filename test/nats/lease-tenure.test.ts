import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { Tenure } from '../../internal/nats/leases/lease-tenure.ts'
import { leaseTimes } from '../../internal/nats/leases/lease-times.ts'
import type { Lease } from '../../internal/shard/ownership/membership.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

const LEASE = { boot: 'here' } as Lease

describe('the tenure of the own lease', () => {
  let clock: ManualClock
  let told: string[]
  let tenure: Tenure

  function renew(): void {
    tenure.confirm(tenure.begin(LEASE).number)
  }

  beforeEach(() => {
    clock = new ManualClock()
    told = []
    tenure = new Tenure(clock, leaseTimes(5_000), {
      changed: () => told.push(`held ${tenure.held}`),
      lapsed: () => told.push('lapsed'),
    })
  })

  it('stands for the TTL less a margin, from the beginning of its last renewal', () => {
    const { number } = tenure.begin(LEASE)
    clock.advance(1_000)
    tenure.confirm(number)
    clock.advance(3_499)
    expect([tenure.held, tenure.lapses]).to.deep.equal([true, 0])
    clock.advance(1)
    expect([tenure.held, tenure.lapses]).to.deep.equal([false, 1])
    expect(told).to.deep.equal(['held true', 'lapsed', 'held false'])
  })

  it('is over at once when the machine was suspended for longer, before any timer has run', () => {
    renew()
    clock.suspend(4_499)
    expect(tenure.held).to.equal(true)
    clock.suspend(1)
    expect(tenure.held).to.equal(false)
    expect(tenure.lease).to.equal(undefined)
  })

  it('counts a lapse by suspension before it is held again', () => {
    renew()
    clock.suspend(60_000)
    const { number } = tenure.begin(LEASE)
    expect(tenure.lapses).to.equal(0)
    tenure.confirm(number)
    expect([tenure.held, tenure.lapses]).to.deep.equal([true, 1])
    expect(told).to.deep.equal(['held true', 'lapsed', 'held false', 'held true'])
  })

  it('does not take the answer to a renewal from before a suspension for a new one', () => {
    renew()
    const { number } = tenure.begin(LEASE)
    clock.suspend(60_000)
    tenure.confirm(number)
    expect(tenure.held).to.equal(false)
    expect(told).to.deep.equal(['held true', 'lapsed', 'held false'])
  })

  it('counts no lapse while it is renewed in time', () => {
    for (let beat = 0; beat < 20; beat++) {
      renew()
      clock.advance(1_000)
    }
    expect([tenure.held, tenure.lapses]).to.deep.equal([true, 0])
  })
})
