import { expect } from 'chai'
import { describe, it } from 'mocha'
import { isFromLeader } from '../../internal/nats/log/stream-reads.ts'

describe('an answer to STREAM.INFO', () => {
  const replicas = [{ name: 'n2' }, { name: 'n3' }]

  it('counts from a single server and from the leader', () => {
    expect(isFromLeader(undefined)).to.equal(true)
    expect(isFromLeader({ leader: 'n1' })).to.equal(true)
    expect(isFromLeader({ leader: 'n1', replicas })).to.equal(true)
  })

  it('does not count without a leader, or from another server', () => {
    expect(isFromLeader({ replicas })).to.equal(false)
    expect(isFromLeader({ leader: '', replicas })).to.equal(false)
    expect(isFromLeader({ leader: 'n2', replicas })).to.equal(false)
  })
})
