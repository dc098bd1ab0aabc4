import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseHosts } from '../../../internal/delivery/dns/hosts-file.ts'

describe('the hosts file', () => {
  it('names addresses, several a line and several a name, in any case', () => {
    const hosts = parseHosts(
      ['127.0.0.1 localhost', '10.0.0.1\tDB db.corp  # the old one', '10.0.0.2 db', '::1 localhost'].join(
        '\n',
      ),
    )
    expect([...hosts]).to.deep.equal([
      ['localhost', ['127.0.0.1', '::1']],
      ['db', ['10.0.0.1', '10.0.0.2']],
      ['db.corp', ['10.0.0.1']],
    ])
  })

  it('passes over comments, empty lines and what is no address', () => {
    expect(parseHosts('# 10.0.0.1 a\n\n  \n10.0.0 b\nc 10.0.0.1\n10.0.0.1\r\n').size).to.equal(0)
    expect([...parseHosts('10.0.0.1 a\r\n')]).to.deep.equal([['a', ['10.0.0.1']]])
  })
})
