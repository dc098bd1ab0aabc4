import { expect } from 'chai'
import { describe, it } from 'mocha'

import { createAuditTelemetry } from '../../internal/telemetry/audit-telemetry.ts'
import { recorder } from './recorder.ts'

describe('the telemetry of the audit', () => {
  it('counts failed authentications by place and credential, and what became of records', async () => {
    const { log, lines, meter, numbers } = recorder('info')
    const telemetry = createAuditTelemetry(log, meter)
    for (let n = 0; n < 3; n++) telemetry.authenticationFailed('ingest', 'key')
    telemetry.authenticationFailed('management', 'key')
    telemetry.authenticationFailed('management', 'token')
    telemetry.written(7)
    telemetry.lost('limit', 2)
    telemetry.lost('full', 5)
    telemetry.lost('limit', 1)
    expect(await numbers()).to.deep.equal({
      'penstock_authentication_failures{place=ingest,credential=key}': 3,
      'penstock_authentication_failures{place=management,credential=key}': 1,
      'penstock_authentication_failures{place=management,credential=token}': 1,
      penstock_audit_records: 7,
      'penstock_audit_lost{reason=limit}': 3,
      'penstock_audit_lost{reason=full}': 5,
    })
    expect(lines, 'nothing a request').to.deep.equal([])
  })

  it('logs what is missing, and that records wait', () => {
    const { log, lines, meter } = recorder('info')
    const telemetry = createAuditTelemetry(log, meter)
    telemetry.leftOut(8)
    telemetry.waits(new Error('connection refused'))
    expect(lines[0]).to.include({ level: 'warn', msg: 'audit records were left out', records: 8 })
    expect(lines[1]).to.include({ level: 'warn', msg: 'audit records wait' })
    expect(lines[1]?.error).to.include('connection refused')
  })
})
