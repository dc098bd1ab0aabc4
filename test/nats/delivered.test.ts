import { expect } from 'chai'
import { describe, it } from 'mocha'
import { msgIdOf, readDelivery } from '../../internal/nats/log/delivered.ts'

describe('what a delivered message says of itself', () => {
  const wanted = { seq: 1_790_000_000_000_123, consumerSeq: 45, at: 1_790_000_000_123 }

  it('is read from its reply subject, with and without a domain', () => {
    const tail = 'INBOX_0.C.1.1790000000000123.45.1790000000123456789.7'
    expect(readDelivery(`$JS.ACK.${tail}`, 'INBOX_0', 'C')).to.deep.equal(wanted)
    expect(readDelivery(`$JS.ACK.hub.hash.${tail}`, 'INBOX_0', 'C')).to.deep.equal(wanted)
    expect(readDelivery(`$JS.ACK.hub.hash.${tail}.random`, 'INBOX_0', 'C')).to.deep.equal(wanted)
  })

  it('is nothing for other consumers, other streams and other subjects', () => {
    const reply = '$JS.ACK.INBOX_0.C.1.100.45.1790000000123456789.7'
    expect(readDelivery(reply, 'INBOX_0', 'D')).to.equal(undefined)
    expect(readDelivery(reply, 'INBOX_1', 'C')).to.equal(undefined)
    expect(readDelivery(reply.replace('$JS', 'JS'), 'INBOX_0', 'C')).to.equal(undefined)
    expect(readDelivery('$JS.ACK.INBOX_0.C.1.x.45.1', 'INBOX_0', 'C')).to.equal(undefined)
    expect(readDelivery('$JS.ACK.INBOX_0.C.', 'INBOX_0', 'C')).to.equal(undefined)
  })

  it('names its id among other headers', () => {
    expect(msgIdOf('NATS/1.0\r\nX: y\r\nNats-Msg-Id: 7:12\r\nZ: z\r\n\r\n')).to.equal('7:12')
    expect(msgIdOf('NATS/1.0\r\nNats-Msg-Id:tight')).to.equal('tight')
    expect(msgIdOf('NATS/1.0\r\n\r\n')).to.equal(null)
    expect(msgIdOf('')).to.equal(null)
  })
})
