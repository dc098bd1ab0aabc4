import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseBufferCreate } from '../../internal/domain/buffer.ts'
import { configOf, creation, creationWith, errorOf } from './sample-buffer.ts'

const header = (name: string, value = 'x') => creationWith('delivery.headers', { [name]: value })

describe('header names', () => {
  const fields = [
    'groupKey.fallbackHeader',
    'delivery.idempotencyHeader',
    'sourceVerification.signatureHeader',
  ]
  for (const field of fields) {
    it(`takes only a token for ${field}`, () => {
      for (const good of ['X-Key', 'x', "!#$%&'*+-.^_`|~", 'x'.repeat(128)]) {
        expect(parseBufferCreate(creationWith(field, good)).ok, good).to.equal(true)
      }
      for (const bad of ['', 'a b', 'a:b', 'a\r\nb', 'a\u0000', 'é', 'x'.repeat(129), 1]) {
        expect(errorOf(creationWith(field, bad)), JSON.stringify(bad)).to.include(field)
      }
    })
  }

  const reserved = [
    'Connection',
    'keep-alive',
    'Proxy-Authorization',
    'proxy-anything',
    'TE',
    'Trailer',
    'Transfer-Encoding',
    'UPGRADE',
    'HTTP2-Settings',
    'Host',
    'Content-Length',
    'content-type',
    'Content-Anything',
    'Expect',
    '__proto__',
  ]
  for (const name of reserved) {
    it(`lets nothing set ${name}`, () => {
      expect(errorOf(header(name))).to.equal(`delivery.headers.${name} is a reserved header name`)
      expect(errorOf(creationWith('delivery.idempotencyHeader', name))).to.include('idempotencyHeader')
      expect(errorOf(creationWith('delivery.signing', { secret: 's', header: name }))).to.include(
        'delivery.signing.header',
      )
    })
  }

  it('refuses __proto__ that JSON brought in', () => {
    const text = JSON.stringify(header('x-a')).replace('"x-a"', '"__proto__"')
    expect(errorOf(JSON.parse(text))).to.include('delivery.headers.__proto__')
  })

  it('keeps the names of the service from the extra headers', () => {
    expect(errorOf(header('X-Idempotency-KEY'))).to.include('delivery.headers.X-Idempotency-KEY')
    expect(errorOf(header('X-Svc-Signature'))).to.include('delivery.headers.X-Svc-Signature')
    const delivery = {
      url: 'https://receiver.example',
      idempotencyHeader: 'X-Once',
      signing: { secret: 's', header: 'X-Sig' },
    }
    for (const name of ['x-once', 'x-sig']) {
      expect(errorOf(creation({ delivery: { ...delivery, headers: { [name]: '1' } } }))).to.include(name)
    }
    const freed = { 'x-idempotency-key': '1', 'x-svc-signature': '1' }
    expect(parseBufferCreate(creation({ delivery: { ...delivery, headers: freed } })).ok).to.equal(true)
  })

  it('keeps the idempotency and the signature header apart', () => {
    const delivery = { url: 'https://receiver.example', signing: { secret: 's', header: 'X-One' } }
    expect(errorOf(creation({ delivery: { ...delivery, idempotencyHeader: 'x-one' } }))).to.include(
      'delivery.idempotencyHeader',
    )
  })
})

describe('extra headers', () => {
  it('takes ordinary ones, empty values included', () => {
    const headers = { Authorization: 'Bearer x', 'X-Empty': '', 'User-Agent': 'caf\u00e9 ~' }
    expect(configOf(creationWith('delivery.headers', headers)).delivery.headers).to.deep.equal(headers)
  })

  for (const name of ['', 'a b', 'a:b', 'a\r\nX', 'é', 'x'.repeat(129)]) {
    it(`refuses the name ${JSON.stringify(name).slice(0, 20)}`, () => {
      expect(errorOf(header(name))).to.include('delivery.headers')
    })
  }

  for (const value of ['a\r\nX: 1', 'a\nb', 'a\u0000', 'a\tb', '\u007f', '\u0085', '€', '\ud800']) {
    it(`refuses the value ${JSON.stringify(value)}`, () => {
      expect(errorOf(header('x-a', value))).to.match(/^delivery\.headers\.x-a /)
    })
  }

  it('takes only strings', () => {
    for (const bad of [1, null, true, {}, ['a']]) {
      expect(errorOf(creationWith('delivery.headers', { 'x-a': bad }))).to.include('delivery.headers.x-a')
    }
    expect(errorOf(creationWith('delivery.headers', ['a']))).to.equal('delivery.headers must be an object')
  })

  it('refuses one name in two spellings', () => {
    expect(errorOf(creationWith('delivery.headers', { 'X-A': '1', 'x-a': '2' }))).to.include('x-a')
  })

  it('bounds value, count and sum', () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, 'v']))
    expect(parseBufferCreate(header('x-a', 'v'.repeat(4096))).ok).to.equal(true)
    expect(errorOf(header('x-a', 'v'.repeat(4097)))).to.include('delivery.headers.x-a')
    expect(parseBufferCreate(creationWith('delivery.headers', many(50))).ok).to.equal(true)
    expect(errorOf(creationWith('delivery.headers', many(51)))).to.include('delivery.headers')
    const sized = (last: number) =>
      Object.fromEntries([4092, 4092, 4092, last].map((size, i) => [`x-0${i}`, 'v'.repeat(size)]))
    expect(parseBufferCreate(creationWith('delivery.headers', sized(4092))).ok).to.equal(true)
    expect(errorOf(creationWith('delivery.headers', sized(4093)))).to.include('delivery.headers')
  })
})

describe('destination', () => {
  const good = ['http://receiver.example', 'HTTPS://receiver.example:8443/a?b=@c#d', 'http://[2001:db8::1]/x']
  for (const url of good) {
    it(`takes ${url}`, () => {
      expect(configOf(creation({ delivery: { url } })).delivery.url).to.equal(url)
    })
  }

  const bad = [
    '',
    'receiver.example',
    '/hook',
    'ftp://receiver.example',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'http:receiver.example',
    'http://',
    'http:///receiver.example',
    'http:\\\\receiver.example',
    'http://receiver.example\\@other.example',
    'http://receiver example',
    ' http://receiver.example',
    'http://receiver.example\n',
    'http://a:99999/',
    'http://user@receiver.example',
    'http://user:secret@receiver.example',
    'http://@receiver.example',
    `http://receiver.example/${'a'.repeat(2048)}`,
    5,
    null,
  ]
  for (const url of bad) {
    it(`refuses ${JSON.stringify(url).slice(0, 60)}`, () => {
      expect(errorOf(creation({ delivery: { url } }))).to.match(/^delivery\.url /)
    })
  }

  it('takes a URL of 2048 characters', () => {
    const url = 'http://receiver.example/'.padEnd(2048, 'a')
    expect(parseBufferCreate(creation({ delivery: { url } })).ok).to.equal(true)
  })

  it('asks the guard and names the field with its reason', () => {
    const parsed = parseBufferCreate(creation(), (url) => `${url} is a loopback address`)
    expect(parsed).to.deep.equal({
      ok: false,
      error: 'delivery.url is not allowed: https://receiver.example/hook is a loopback address',
    })
  })
})
