import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Remembered } from '../../../operator/reconcile/memory.ts'
import { Patience } from '../../../operator/reconcile/patience.ts'
import { AdminError } from '../../../operator/reconcile/ports.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { KEY } from './fixtures.ts'

const memory = (): Remembered => ({ uid: 'uid', bufferId: 'orders', deferrals: 0 })

function fixture() {
  const clock = new ManualClock()
  const service = { returns: 0 }
  return { clock, service, patience: new Patience({ clock, service, randomness: { fraction: () => 0 } }) }
}

describe('what the service asks for', () => {
  it('is waited for by the resources of a limited key in a row, and not by those of another', () => {
    const { clock, patience } = fixture()
    const limited = new AdminError('throttled', 'slowly')
    const waits = Array.from({ length: 9 }, () => patience.defer(limited, 1_000, KEY, memory()))
    expect(waits).to.deep.equal([1_000, 1_000, 1_000, 1_000, 1_000, 1_250, 1_500, 1_750, 2_000])
    expect(patience.defer(limited, 1_000, 'another', memory())).to.equal(1_000)
    clock.advance(60_000)
    expect(patience.defer(limited, 1_000, KEY, memory())).to.equal(1_000)
  })

  it('is owed until then', () => {
    const { clock, patience } = fixture()
    const owing = memory()
    expect(patience.leftMs(owing)).to.equal(0)
    patience.defer(new AdminError('throttled', 'slowly'), 2_000, KEY, owing)
    clock.advance(500)
    expect(patience.leftMs(owing)).to.equal(1_500)
  })

  it('while it is away is tried ever later, and owed no more once it is back', () => {
    const { clock, service, patience } = fixture()
    const owing = memory()
    const away = new AdminError('unavailable', 'away')
    const waits = Array.from({ length: 12 }, () => patience.defer(away, 0, KEY, owing))
    expect(waits.slice(0, 4)).to.deep.equal([1_000, 2_000, 4_000, 8_000])
    expect(waits.at(-1)).to.equal(300_000)
    patience.defer(away, 120_000, KEY, owing)
    clock.advance(1_000)
    expect(patience.leftMs(owing)).to.equal(119_000)
    service.returns++
    expect(patience.leftMs(owing)).to.equal(0)
  })
})
