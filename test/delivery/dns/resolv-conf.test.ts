import { expect } from 'chai'
import { describe, it } from 'mocha'
import { candidatesOf, parseResolvConf } from '../../../internal/delivery/dns/resolv-conf.ts'

const POD = `
search shop.svc.cluster.local svc.cluster.local cluster.local
nameserver 10.96.0.10
options ndots:5
`

function candidates(name: string, text: string): string[] {
  return candidatesOf(name, parseResolvConf(text, 'node')).map((each) => each.name)
}

describe('resolv.conf', () => {
  it('is read as a pod of Kubernetes has it', () => {
    expect(parseResolvConf(POD, 'pod-1')).to.deep.equal({
      servers: ['10.96.0.10'],
      search: ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local'],
      ndots: 5,
    })
  })

  it('takes the first three servers, the last list, and comments for nothing', () => {
    const text = [
      '; nameserver 10.0.0.9',
      'domain old.test',
      'search one.test two.test. # three.test',
      'nameserver 10.0.0.1',
      'nameserver none',
      'nameserver fd00::1',
      'nameserver 10.0.0.2',
      'nameserver 10.0.0.3',
      'options rotate ndots:99 timeout:1',
    ].join('\n')
    expect(parseResolvConf(text, 'node')).to.deep.equal({
      servers: ['10.0.0.1', 'fd00::1', '10.0.0.2'],
      search: ['one.test', 'two.test'],
      ndots: 15,
    })
  })

  it('means this machine and its domain when it says nothing', () => {
    expect(parseResolvConf('', 'node.rack.test')).to.deep.equal({
      servers: ['127.0.0.1'],
      search: ['rack.test'],
      ndots: 1,
    })
    expect(parseResolvConf('search .\n', 'node.rack.test').search).to.deep.equal([])
    expect(parseResolvConf('', 'node').search).to.deep.equal([])
  })
})

describe('the names to ask for', () => {
  it('are completed first below the count of dots, and as it stands at last', () => {
    expect(candidates('receiver.shop', POD)).to.deep.equal([
      'receiver.shop.shop.svc.cluster.local',
      'receiver.shop.svc.cluster.local',
      'receiver.shop.cluster.local',
      'receiver.shop',
    ])
  })

  it('begin with the name as it stands from the count of dots on', () => {
    expect(candidates('example.org', 'search corp.test')).to.deep.equal([
      'example.org',
      'example.org.corp.test',
    ])
    expect(candidates('intranet', 'search corp.test')).to.deep.equal(['intranet.corp.test', 'intranet'])
    expect(candidates('a.b', 'search corp.test\noptions ndots:0')).to.deep.equal(['a.b', 'a.b.corp.test'])
  })

  it('are one for a name with a dot at its end', () => {
    expect(candidates('receiver.shop.', POD)).to.deep.equal(['receiver.shop'])
  })
})
