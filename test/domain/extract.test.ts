import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  extractGroupKey,
  extractMessageId,
  type HeaderLookup,
  withoutCredentials,
} from '../../internal/domain/extract.ts'
import type { GroupKeyConfig, MessageIdConfig } from '../../internal/domain/model.ts'

const body = (text: string) => ({ bytes: Buffer.from(text), value: JSON.parse(text) })

function headers(sent: Record<string, string>): HeaderLookup {
  const lower = new Map(Object.entries(sent).map(([name, value]) => [name.toLowerCase(), value]))
  return (name) => lower.get(name.toLowerCase())
}

function keyOf(config: GroupKeyConfig, text: string, sent: Record<string, string> = {}): string {
  const found = extractGroupKey(config, body(text), headers(sent))
  return found.ok ? found.value : `${found.error.status} ${found.error.body.error}`
}

const at = (path: string): GroupKeyConfig => ({ mode: 'jsonpath', path })
const MISSING = '400 Could not extract group key from request'

describe('the group key', () => {
  const found: [json: string, path: string, key: string][] = [
    ['{"a":"x"}', '$.a', 'x'],
    ['{"a":" x "}', '$.a', ' x '],
    ['{"a":"0"}', '$.a', '0'],
    ['{"a":0}', '$.a', '0'],
    ['{"a":-0}', '$.a', '-0'],
    ['{"a":1.0}', '$.a', '1.0'],
    ['{"a":1e400}', '$.a', '1e400'],
    ['{"a":9007199254740993}', '$.a', '9007199254740993'],
    ['{"a":true}', '$.a', 'true'],
    ['{"a":false}', '$.a', 'false'],
    ['{"a":{"b":{"c":"deep"}}}', '$.a.b.c', 'deep'],
    ['{"a":["x","y"]}', '$.a.1', 'y'],
    ['[{"a":"x"}]', '$.0.a', 'x'],
    ['{"a":1,"a":2}', '$.a', '2'],
    ['{"a":"x","a":"y"}', '$.a', 'y'],
    ['{"\\u0061":5}', '$.a', '5'],
    ['{"constructor":{"name":"own"}}', '$.constructor.name', 'own'],
    ['{"__proto__":{"a":"own"}}', '$.__proto__.a', 'own'],
    ['{"a":"\\ud800"}', '$.a', '\ufffd'],
    ['{"größe":"XL"}', '$.größe', 'XL'],
  ]
  for (const [json, path, key] of found) {
    it(`at ${path} of ${json} is ${JSON.stringify(key)}`, () => expect(keyOf(at(path), json)).to.equal(key))
  }

  const none: [json: string, path: string][] = [
    ['{}', '$.a'],
    ['{"a":""}', '$.a'],
    ['{"a":null}', '$.a'],
    ['{"a":{}}', '$.a'],
    ['{"a":[]}', '$.a'],
    ['{"a":["x"]}', '$.a'],
    ['{"a":["x"]}', '$.a.length'],
    ['{"a":["x"]}', '$.a.1'],
    ['{"a":["x"]}', '$.a.-1'],
    ['{"a":["x"]}', '$.a.00'],
    ['{"a":"x"}', '$.a.length'],
    ['{"a":"x"}', '$.a.0'],
    ['{"a":1}', '$.a.b'],
    ['{"a":{"b":"x"}}', '$.b'],
    ['{}', '$.constructor.name'],
    ['{}', '$.__proto__'],
    ['{"a":{}}', '$.a.__proto__.constructor.name'],
    ['{}', '$.toString.name'],
    ['[]', '$.length'],
    ['null', '$.a'],
    ['"text"', '$.length'],
    ['5', '$.a'],
    ['true', '$.a'],
  ]
  for (const [json, path] of none) {
    it(`is not at ${path} of ${json}; the fallback header then counts`, () => {
      expect(keyOf(at(path), json)).to.equal(MISSING)
      const config: GroupKeyConfig = { mode: 'jsonpath', path, fallbackHeader: 'X-Key' }
      expect(keyOf(config, json)).to.equal(MISSING)
      expect(keyOf(config, json, { 'x-key': '' })).to.equal(MISSING)
      expect(keyOf(config, json, { 'x-key': 'h' })).to.equal('h')
    })
  }

  it('is never inherited', () => {
    Object.defineProperty(Object.prototype, 'inherited', { value: 'x', configurable: true })
    try {
      expect(keyOf(at('$.inherited'), '{}')).to.equal(MISSING)
      expect(keyOf(at('$.a.inherited'), '{"a":{}}')).to.equal(MISSING)
    } finally {
      Reflect.deleteProperty(Object.prototype, 'inherited')
    }
  })

  it('comes from the body before the header in jsonpath mode', () => {
    const config: GroupKeyConfig = { mode: 'jsonpath', path: '$.a', fallbackHeader: 'X-Key' }
    expect(keyOf(config, '{"a":"b"}', { 'X-Key': 'h' })).to.equal('b')
  })

  it('never comes from a header that carries credentials, or the signature', () => {
    for (const name of ['X-API-Key', 'authorization', 'Cookie', 'Stripe-Signature', 'X-Own-Signature']) {
      const config: GroupKeyConfig = { mode: 'header', fallbackHeader: name }
      const lookup = withoutCredentials(headers({ [name]: 'secret' }), 'x-own-signature')
      expect(extractGroupKey(config, body('{}'), lookup).ok, name).to.equal(false)
    }
  })

  it('comes from the header alone in header mode', () => {
    const config: GroupKeyConfig = { mode: 'header', path: '$.a', fallbackHeader: 'X-Key' }
    expect(keyOf(config, '{"a":"b"}', { 'X-Key': 'h' })).to.equal('h')
    expect(keyOf(config, '{"a":"b"}')).to.equal(MISSING)
  })

  const wires: [what: string, bytes: Buffer, key: string][] = [
    ['UTF-8', Buffer.from('Zoë 🎈 \uFEFF'), 'Zoë 🎈 \uFEFF'],
    ['Latin-1', Buffer.from('Zoë', 'latin1'), 'Zoë'],
    ['a cut UTF-8 character', Buffer.from([0x5a, 0xc3]), 'ZÃ'],
    ['an overlong UTF-8 character', Buffer.from([0xc0, 0xaf]), 'À¯'],
    ['a surrogate in UTF-8', Buffer.from([0xed, 0xa0, 0x80]), 'í\u00a0\u0080'],
    ['UTF-8 beside Latin-1', Buffer.from([0xc3, 0xab, 0xeb]), 'Ã«ë'],
  ]
  for (const [what, bytes, key] of wires) {
    it(`in a header of ${what} is ${JSON.stringify(key)}`, () => {
      const sent = { 'X-Key': bytes.toString('latin1') }
      expect(keyOf({ mode: 'header', fallbackHeader: 'X-Key' }, '{}', sent)).to.equal(key)
      expect(idOf('{}', { 'X-Idempotency-Key': bytes.toString('latin1') })).to.equal(key)
    })
  }

  it('has at most 1,024 UTF-8 bytes, wherever it comes from', () => {
    const config: GroupKeyConfig = { mode: 'jsonpath', path: '$.a', fallbackHeader: 'X-Key' }
    const tooLong = '400 Group key must be at most 1024 bytes'
    expect(keyOf(config, JSON.stringify({ a: 'k'.repeat(1024) }))).to.have.length(1024)
    expect(keyOf(config, JSON.stringify({ a: 'ö'.repeat(512) }))).to.have.length(512)
    expect(keyOf(config, JSON.stringify({ a: 'k'.repeat(1025) }), { 'X-Key': 'h' })).to.equal(tooLong)
    expect(keyOf(config, JSON.stringify({ a: `${'ö'.repeat(512)}k` }))).to.equal(tooLong)
    expect(keyOf(config, `{"a":1${'0'.repeat(1023)}}`)).to.have.length(1024)
    expect(keyOf(config, `{"a":1${'0'.repeat(1024)}}`)).to.equal(tooLong)
    expect(keyOf(config, '{}', { 'X-Key': 'h'.repeat(1024) })).to.have.length(1024)
    expect(keyOf(config, '{}', { 'X-Key': 'h'.repeat(1025) })).to.equal(tooLong)
    expect(keyOf(config, '{}', { 'X-Key': 'Ã¶'.repeat(512) })).to.equal('ö'.repeat(512))
  })

  it('cannot hold NUL', () => {
    expect(keyOf(at('$.a'), '{"a":"x\\u0000"}')).to.equal(
      '400 Group key must not contain the character U+0000',
    )
  })
})

function idOf(text: string, sent: Record<string, string> = {}, config?: MessageIdConfig): string | null {
  const found = extractMessageId(config, body(text), headers(sent))
  return found.ok ? found.value : `${found.error.status} ${found.error.body.error}`
}

describe('the message id', () => {
  const found: [json: string, id: string][] = [
    ['{"messageId":"m-1"}', 'm-1'],
    ['{"messageId":7}', '7'],
    ['{"messageId":0}', '0'],
    ['{"messageId":7.10}', '7.10'],
    ['{"messageId":12345678901234567890}', '12345678901234567890'],
    ['{"messageId":1,"message\\u0049d":2}', '2'],
    ['{"messageId":"\\ud800"}', '\ufffd'],
  ]
  for (const [json, id] of found) {
    it(`of ${json} is ${id}, whatever the header says`, () => {
      expect(idOf(json, { 'X-Idempotency-Key': 'h' })).to.equal(id)
    })
  }

  const none = [
    '{}',
    '{"messageId":""}',
    '{"messageId":null}',
    '{"messageId":true}',
    '{"messageId":{}}',
    '{"messageId":["m"]}',
    '{"data":{"messageId":"m"}}',
    '{"__proto__":{"messageId":"m"}}',
    '[{"messageId":"m"}]',
    'null',
    '"messageId"',
    '5',
  ]
  for (const json of none) {
    it(`is not in ${json}; the header then counts`, () => {
      expect(idOf(json)).to.equal(null)
      expect(idOf(json, { 'X-Idempotency-Key': '' })).to.equal(null)
      expect(idOf(json, { 'x-idempotency-key': 'h' })).to.equal('h')
    })
  }

  it('has at most 512 UTF-8 bytes; the error names where it came from', () => {
    const json = (id: string) => JSON.stringify({ messageId: id })
    expect(idOf(json('m'.repeat(512)))).to.have.length(512)
    expect(idOf(json('ö'.repeat(256)))).to.have.length(256)
    const inBody = '400 messageId must be at most 512 bytes'
    for (const long of ['m'.repeat(513), `${'ö'.repeat(256)}m`, 'm'.repeat(1_000_000)]) {
      expect(idOf(json(long), { 'X-Idempotency-Key': 'h' })).to.equal(inBody)
    }
    expect(idOf(`{"messageId":1${'0'.repeat(511)}}`)).to.have.length(512)
    expect(idOf(`{"messageId":1${'0'.repeat(512)}}`)).to.equal(inBody)
    expect(idOf('{}', { 'X-Idempotency-Key': 'h'.repeat(512) })).to.have.length(512)
    expect(idOf('{}', { 'X-Idempotency-Key': 'h'.repeat(513) })).to.equal(
      '400 X-Idempotency-Key must be at most 512 bytes',
    )
  })

  it('cannot hold NUL', () => {
    expect(idOf('{"messageId":"a\\u0000b"}')).to.equal('400 messageId must not contain the character U+0000')
  })
})

describe('the message id of a buffer that says where it stands', () => {
  const both: MessageIdConfig = { path: '$.event.id', header: 'X-Event-Id' }
  const all = { 'X-Event-Id': 'own header', 'X-Idempotency-Key': 'header' }

  it('is looked for at its path, in its header, in messageId, and in X-Idempotency-Key, in this order', () => {
    expect(idOf('{"event":{"id":"own body"},"messageId":"body"}', all, both)).to.equal('own body')
    expect(idOf('{"event":{},"messageId":"body"}', all, both)).to.equal('own header')
    expect(idOf('{"messageId":"body"}', { 'X-Idempotency-Key': 'header' }, both)).to.equal('body')
    expect(idOf('{}', { 'X-Idempotency-Key': 'header' }, both)).to.equal('header')
    expect(idOf('{}', {}, both)).to.equal(null)
  })

  it('needs only one of the two', () => {
    expect(idOf('{"event":{"id":"own body"}}', all, { path: '$.event.id' })).to.equal('own body')
    expect(idOf('{"event":{"id":"own body"}}', all, { header: 'x-event-id' })).to.equal('own header')
    expect(idOf('{"messageId":"body"}', all, { path: '$.event.id' })).to.equal('body')
  })

  it('is a number by its source text, an element by its index, and nothing else than text or number', () => {
    const path = { path: '$.list.1' }
    expect(idOf('{"list":[0,9007199254740993]}', {}, path)).to.equal('9007199254740993')
    expect(idOf('{"list":[0,1.0]}', {}, path)).to.equal('1.0')
    for (const value of ['""', 'null', 'true', '{}', '[]'])
      expect(idOf(`{"list":[0,${value}],"messageId":"body"}`, {}, path), value).to.equal('body')
    expect(idOf('{"messageId":"body"}', { 'X-Event-Id': '' }, both)).to.equal('body')
  })

  it('is refused as any other; the error names where it stands', () => {
    const long = 'm'.repeat(513)
    const refused = 'must be at most 512 bytes'
    expect(idOf(JSON.stringify({ event: { id: long } }), all, both)).to.equal(`400 event.id ${refused}`)
    expect(idOf('{}', { 'X-Event-Id': long }, both)).to.equal(`400 X-Event-Id ${refused}`)
    expect(idOf(JSON.stringify({ messageId: long }), {}, both)).to.equal(`400 messageId ${refused}`)
    expect(idOf('{"event":{"id":"\\u0000"}}', all, both)).to.equal(
      '400 event.id must not contain the character U+0000',
    )
  })
})
