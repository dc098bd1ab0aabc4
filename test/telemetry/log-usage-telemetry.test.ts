import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { LogUsage } from '../../internal/shard/ports.ts'
import { createLogUsageTelemetry } from '../../internal/telemetry/log-usage-telemetry.ts'
import { recorder } from './recorder.ts'

describe('the telemetry of logs', () => {
  const inbox: LogUsage = { shard: 1, log: 'inbox', bytes: 850, maxBytes: 1_000 }
  const journal: LogUsage = { shard: 1, log: 'journal', bytes: 20, maxBytes: 2_000 }
  const archive: LogUsage = { shard: 1, log: 'archive', bytes: 3, maxBytes: 300 }

  it('shows what the logs here hold, and those of a shard that went as empty', async () => {
    const { log, meter, numbers } = recorder()
    const telemetry = createLogUsageTelemetry(log, meter)
    telemetry.usage([inbox, journal, archive])
    expect(await numbers()).to.deep.equal({
      'penstock_log_bytes{shard=1,log=inbox}': 850,
      'penstock_log_bytes{shard=1,log=journal}': 20,
      'penstock_log_bytes{shard=1,log=archive}': 3,
      'penstock_log_max_bytes{shard=1,log=inbox}': 1_000,
      'penstock_log_max_bytes{shard=1,log=journal}': 2_000,
      'penstock_log_max_bytes{shard=1,log=archive}': 300,
    })
    telemetry.usage([{ ...inbox, shard: 2 }])
    expect(await numbers()).to.include({
      'penstock_log_bytes{shard=2,log=inbox}': 850,
      'penstock_log_bytes{shard=1,log=inbox}': 0,
      'penstock_log_max_bytes{shard=1,log=journal}': 0,
    })
  })

  it('warns of one that is nearly full, and tells when it has room', () => {
    const { log, lines, meter } = recorder('info')
    const telemetry = createLogUsageTelemetry(log, meter)
    telemetry.nearlyFull(inbox)
    telemetry.hasSpace({ ...inbox, bytes: 100 })
    const about = { shard: 1, log: 'inbox', maxBytes: 1_000 }
    expect(lines[0]).to.include({ ...about, level: 'warn', msg: 'a log is nearly full', bytes: 850 })
    expect(lines[1]).to.include({ ...about, level: 'info', msg: 'a log has room again', bytes: 100 })
  })
})
