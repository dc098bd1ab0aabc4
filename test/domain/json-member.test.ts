import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { memberBytes } from '../../internal/domain/json-member.ts'

const textOf = (json: string, name = 'payload') => {
  const bytes = memberBytes(Buffer.from(json), name)
  return bytes && Buffer.from(bytes).toString()
}

describe('the bytes of a member', () => {
  for (const [json, expected] of [
    [
      '{"payload":{"n":1.0,"big":12345678901234567890,"d":1,"d":2}}',
      '{"n":1.0,"big":12345678901234567890,"d":1,"d":2}',
    ],
    [' { "a" : [1, {"payload":2}] , "payload" :\t{ "x": "},{\\"" } \n} ', '{ "x": "},{\\"" }'],
    ['{"payload":1,"payload": [ 2 ] ,"b":null}', '[ 2 ]'],
    ['{"\\u0070ayload":1e400}', '1e400'],
    ['{"a:b,":{"payload":1}}', undefined],
    ['{}', undefined],
    ['{"payload":""}', '""'],
  ] as const) {
    it(`of ${json} are ${expected}`, () => {
      expect(textOf(json)).to.equal(expected)
    })
  }

  it('parse to what the whole parses to', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.boolean(), (object, spaced) => {
        const json = JSON.stringify(object, null, spaced ? 2 : 0)
        for (const [name, value] of Object.entries(object)) {
          expect(JSON.parse(textOf(json, name)!)).to.deep.equal(JSON.parse(JSON.stringify(value)))
        }
      }),
    )
  })
})
