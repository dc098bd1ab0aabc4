import { expect } from 'chai'
import { describe, it } from 'mocha'
import { isOpsHost } from '../../internal/telemetry/ops-host.ts'

const allows = (header: string | undefined, listening = '0.0.0.0') => isOpsHost(header, listening)

describe('a Host of the ops port', () => {
  it('may be an address, with a port and without', () => {
    for (const host of ['127.0.0.1:9464', '10.1.2.3', '[::1]:9464', '[fd00::1]'])
      expect(allows(host), host).to.equal(true)
  })

  it('may be a name that nobody can register', () => {
    for (const host of [
      'localhost:9464',
      'actor-1:9464',
      'LOCALHOST',
      'penstock-admin.prod.svc:9464',
      'penstock-admin.prod.svc.cluster.local.:9464',
      'ip-10-0-0-1.ec2.internal',
    ])
      expect(allows(host), host).to.equal(true)
  })

  it('may be the name that is configured, and may be missing', () => {
    expect([allows('Ops.Example.com:9464', 'ops.example.com'), allows(undefined)]).to.deep.equal([true, true])
  })

  it('may be no name of anybody else', () => {
    for (const host of [
      'rebound.example:9464',
      'localhost.example',
      '127.0.0.1.example',
      'svc.example',
      'x@localhost',
      'localhost.',
      'local.evil.com',
      '',
      '[::1',
    ])
      expect(allows(host), host).to.equal(false)
  })
})
