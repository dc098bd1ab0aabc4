import { expect } from 'chai'
import { describe, it } from 'mocha'

import { createLookupTelemetry } from '../../internal/telemetry/lookup-telemetry.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { recorder } from './recorder.ts'

describe('the telemetry of lookups', () => {
  it('counts them by how they ended', async () => {
    const { log, meter, numbers } = recorder()
    const telemetry = createLookupTelemetry(log, meter, new ManualClock())
    for (const outcome of ['found', 'refused', 'found', 'unanswered'] as const) telemetry.lookup(outcome)
    expect(await numbers()).to.deep.equal({
      'penstock_dns_lookups{outcome=found}': 2,
      'penstock_dns_lookups{outcome=refused}': 1,
      'penstock_dns_lookups{outcome=unanswered}': 1,
    })
  })

  it('tells once that no name server answers, and once that names are found again for a while', () => {
    const { log, lines, meter } = recorder('info')
    const clock = new ManualClock()
    const telemetry = createLookupTelemetry(log, meter, clock)
    for (const outcome of ['found', 'unreachable', 'found', 'unreachable', 'refused'] as const)
      telemetry.lookup(outcome)
    clock.advance(10_000)
    telemetry.lookup('failed')
    expect(lines.map(({ level, msg }) => [level, msg])).to.deep.equal([['warn', 'no name server answers']])
    for (const outcome of ['found', 'found'] as const) telemetry.lookup(outcome)
    expect(lines.slice(1).map(({ level, msg }) => [level, msg])).to.deep.equal([
      ['info', 'a name server answers again'],
    ])
  })
})
