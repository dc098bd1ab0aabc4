import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  type Cidr,
  checkDestination,
  isPermitted,
  parseAddress,
  parseCidr,
} from '../../internal/delivery/addresses.ts'

const cidrs = (...texts: string[]): Cidr[] =>
  texts.map((text) => parseCidr(text) ?? expect.fail(`no block: ${text}`))

/** Edges of every refused block, and the address before and after it where that one is public. */
const refused = [
  [
    '0.0.0.0',
    '0.255.255.255',
    '10.0.0.0',
    '10.255.255.255',
    '100.64.0.0',
    '100.100.100.200',
    '100.127.255.255',
  ],
  ['127.0.0.1', '127.255.255.255', '168.63.129.16', '169.254.0.0', '169.254.169.254', '169.254.255.255'],
  ['172.16.0.0', '172.31.255.255', '192.0.0.0', '192.0.0.192', '192.0.2.1', '192.88.99.1', '192.168.0.0'],
  ['192.168.255.255', '198.18.0.0', '198.19.255.255', '198.51.100.7', '203.0.113.255', '224.0.0.1'],
  ['239.255.255.255', '240.0.0.0', '255.255.255.254', '255.255.255.255'],
  [
    '::',
    '::1',
    '::2',
    '::7f00:1',
    '::127.0.0.1',
    '::8.8.8.8',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.1.2.3',
  ],
  ['::ffff:0:0', '::ffff:169.254.169.254', '::ffff:0:8.8.8.8', '64:ff9b::127.0.0.1', '64:ff9b::a00:1'],
  [
    '64:ff9b::169.254.169.254',
    '64:ff9b::1:8.8.8.8',
    '64:ff9b:1::8.8.8.8',
    '64:ff9b:1:ffff::1',
    '64:ff9b:2::1',
  ],
  [
    '100::1',
    '100:0:0:1::1',
    '1fff::1',
    '2001::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:2::1',
    '2001:10::1',
  ],
  [
    '2001:20::1',
    '2001:1ff:ffff::1',
    '2001:db8::',
    '2001:db8:ffff:ffff::1',
    '2002:7f00:1::',
    '2002:a9fe:a9fe::1',
  ],
  [
    '2002:c0a8:101::1',
    '2002:0:0::1',
    '3fff::',
    '3fff:fff:ffff::1',
    '4000::1',
    '5f00::1',
    'fc00::1',
    'fd00:ec2::254',
  ],
  [
    'fdff:ffff::1',
    'fe00::1',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
    'fec0::1',
    'feff::1',
    'ff00::1',
    'ff02::1',
  ],
  ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2a00::5efe:127.0.0.1', '2a00::200:5efe:10.0.0.1'],
].flat()

const permitted = [
  ['1.0.0.0', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
  [
    '128.0.0.0',
    '168.63.129.15',
    '168.63.129.17',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
  ],
  [
    '192.0.1.0',
    '192.0.3.0',
    '192.88.98.255',
    '192.88.100.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
  ],
  ['198.20.0.0', '198.51.99.255', '198.51.101.0', '203.0.112.255', '203.0.114.0', '223.255.255.255'],
  [
    '::ffff:8.8.8.8',
    '::ffff:808:808',
    '64:ff9b::8.8.8.8',
    '2002:808:808::1',
    '2001:200::1',
    '2001:4860:4860::8888',
  ],
  [
    '2001:db7:ffff::1',
    '2001:db9::1',
    '2600::',
    '2a00:1450::1',
    '3ffe:ffff::1',
    '3fff:1000::1',
    '2a00::5efe:8.8.8.8',
  ],
].flat()

describe('addresses that deliveries may reach', () => {
  it('refuses everything outside global unicast, also when it is wrapped', () => {
    for (const address of refused) expect(isPermitted(address, []), address).to.equal(false)
  })

  it('permits public addresses up to the edges of the refused blocks', () => {
    for (const address of permitted) expect(isPermitted(address, []), address).to.equal(true)
  })

  it('refuses what is no address', () => {
    for (const text of [
      '',
      'localhost',
      '127.1',
      '0x7f000001',
      '1.2.3',
      '::g',
      '[::1]',
      '8.8.8.8/32',
      ' 8.8.8.8',
    ]) {
      expect(isPermitted(text, cidrs('0.0.0.0/0', '::/0')), text).to.equal(false)
    }
  })

  it('lets the allow-list override, unwrapped addresses included, and nothing beside it', () => {
    const allow = cidrs('127.0.0.0/8', '::1', '10.32.0.0/11')
    for (const address of [
      '127.0.0.1',
      '127.255.0.1',
      '::1',
      '::ffff:127.0.0.1',
      '10.32.0.0',
      '10.63.255.255',
    ]) {
      expect(isPermitted(address, allow), address).to.equal(true)
    }
    for (const address of [
      '10.31.255.255',
      '10.64.0.0',
      '::2',
      '128.0.0.0/1',
      '192.168.0.1',
      '::127.0.0.1',
    ]) {
      expect(isPermitted(address, allow), address).to.equal(false)
    }
    expect(isPermitted('fd12::1', cidrs('fd00::/8'))).to.equal(true)
    expect(isPermitted('64:ff9b:1::1', cidrs('64:ff9b:1::/48'))).to.equal(true)
  })

  it('parses every spelling of an address to the same bytes', () => {
    const spellings = ['1:2:0:0:0:0:7f00:1', '1:2::7f00:1', '0001:0002::127.0.0.1', '1:2:0:0::0:127.0.0.1']
    const bytes = Uint8Array.from([0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1])
    for (const spelling of spellings) expect(parseAddress(spelling), spelling).to.deep.equal(bytes)
    expect(parseAddress('ABCD::')).to.deep.equal(Uint8Array.from([0xab, 0xcd, ...new Array(14).fill(0)]))
    expect(parseAddress('::')).to.deep.equal(new Uint8Array(16))
    expect(parseAddress('10.1.2.255')).to.deep.equal(Uint8Array.from([10, 1, 2, 255]))
  })

  it('reads back any address that URL prints', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
        fc.nat(8),
        fc.nat(8),
        (bytes, from, length) => {
          bytes.fill(0, from * 2, (from + length) * 2) // so that `::` appears in all places
          const groups = Array.from({ length: 8 }, (_, i) =>
            ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16),
          )
          const printed = new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1)
          expect(parseAddress(printed)).to.deep.equal(bytes)
        },
      ),
    )
  })

  it('matches blocks bit by bit', () => {
    fc.assert(
      fc.property(
        fc.nat(0xffffff),
        fc.integer({ min: 8, max: 32 }),
        fc.integer({ min: 8, max: 31 }),
        (low, prefix, bit) => {
          const base = Uint8Array.from([10, low >> 16, (low >> 8) & 255, low & 255])
          const flipped = Uint8Array.from(base)
          flipped[bit >> 3]! ^= 0x80 >> (bit & 7)
          const allow = cidrs(`${base.join('.')}/${prefix}`)
          expect(isPermitted(base.join('.'), allow)).to.equal(true)
          expect(isPermitted(flipped.join('.'), allow)).to.equal(bit >= prefix)
        },
      ),
    )
  })

  it('refuses malformed blocks', () => {
    for (const text of [
      '',
      '10.0.0.0/33',
      '::/129',
      '10.0.0/8',
      '10.0.0.0/',
      '10.0.0.0/-1',
      '10.0.0.0/8/8',
      'a/8',
    ]) {
      expect(parseCidr(text), text).to.equal(null)
    }
    expect(parseCidr(' 10.0.0.0/8 ')?.prefix).to.equal(8)
    expect(parseCidr('::1')?.prefix).to.equal(128)
  })
})

describe('the check of a destination when it is configured', () => {
  const hosts = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '017700000001',
    '0x7f.1',
    '0x7F000001',
    '127.0.0.1.',
    '0',
    '0x0',
  ]
  const more = [
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::7f00:1]',
    '[0:0:0:0:0:ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
  ]
  const disguised = [
    '１２７.0.0.1',
    '127。0。0。1',
    '%31%32%37.0.0.1',
    '①②⑦.0.0.1',
    '192.168.257',
    '169.254.43518',
  ]

  it('refuses literal addresses in every spelling', () => {
    for (const host of [...hosts, ...more, ...disguised]) {
      expect(checkDestination(`http://${host}/x`, []), host).to.contain(
        'is not a public address, and PENSTOCK_ALLOW_DESTINATIONS does not permit it',
      )
      expect(checkDestination(`https://${host}:8443/x`, []), host).to.contain('is not a public address')
    }
  })

  it('lets names, public and allowed addresses pass', () => {
    const allow = cidrs('127.0.0.0/8')
    for (const url of [
      'http://example.com/',
      'https://localhost:1/',
      'http://8.8.8.8/',
      'https://[2a00::1]/x?y#z',
    ]) {
      expect(checkDestination(url, []), url).to.equal(null)
    }
    expect(checkDestination('http://127.1:9/', allow)).to.equal(null)
    expect(checkDestination('http://[::ffff:7f00:1]:9/', allow)).to.equal(null)
  })

  it('lets permitted ports pass alone, those of the scheme too', () => {
    const check = (url: string) => checkDestination(url, [], [443, 8443])
    for (const url of ['https://example.com/', 'https://example.com:8443/', 'http://example.com:443/'])
      expect(check(url), url).to.equal(null)
    for (const [url, port] of [
      ['http://example.com/', 80],
      ['https://example.com:6379/', 6379],
      ['https://8.8.8.8:22/', 22],
    ])
      expect(check(`${url}`), `${url}`).to.equal(`port ${port} is not in PENSTOCK_DESTINATION_PORTS`)
  })

  it('refuses other schemes and what is no URL', () => {
    for (const url of [
      'ftp://example.com/',
      'file:///etc/passwd',
      'ws://example.com',
      'javascript:1',
      'data:,x',
    ]) {
      expect(checkDestination(url, []), url).to.contain('scheme')
    }
    for (const url of ['', 'example.com', '/path', 'http://', 'http://256.1.1.1/', 'http://1.2.3.4.5/']) {
      expect(checkDestination(url, []), url).to.contain('not an absolute URL')
    }
  })
})
