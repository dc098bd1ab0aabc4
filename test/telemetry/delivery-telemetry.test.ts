import { expect } from 'chai'
import { describe, it } from 'mocha'

import { createDeliveryTelemetry } from '../../internal/telemetry/delivery-telemetry.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { recorder } from './recorder.ts'

describe('the telemetry of attempts that were withdrawn for want of ours', () => {
  it('counts them by what was wanted', async () => {
    const { log, meter, numbers } = recorder()
    const telemetry = createDeliveryTelemetry(log, meter, new ManualClock())
    for (const want of ['room', 'socket', 'room'] as const) telemetry.withheld(want)
    expect(await numbers()).to.deep.equal({
      'penstock_withheld_attempts{want=room}': 2,
      'penstock_withheld_attempts{want=socket}': 1,
    })
  })

  it('tells once a minute that no socket is left, and nothing of room', () => {
    const { log, lines, meter } = recorder('info')
    const clock = new ManualClock()
    const telemetry = createDeliveryTelemetry(log, meter, clock)
    for (const want of ['room', 'socket', 'socket'] as const) telemetry.withheld(want)
    expect(lines.map(({ level, msg }) => [level, msg])).to.deep.equal([
      ['warn', 'no socket is left for deliveries'],
    ])
    clock.advance(60_000)
    telemetry.withheld('socket')
    expect(lines).to.have.length(2)
  })
})
