import { expect } from 'chai'
import { describe, it } from 'mocha'
import { withShortStrings } from '../../../operator/kubernetes/short-strings.ts'
import { seededFractions } from '../../support/seeded.ts'

async function* pieces(bytes: Buffer, size: number) {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

const short = (text: string, longest: number, size = text.length): Promise<string> =>
  withShortStrings(pieces(Buffer.from(text), size), longest)

describe('JSON with short strings', () => {
  it('is the same text where none is longer', async () => {
    const text = '{"a": "1234", "\\"b": ["\\u00e9", "", 1e3, "é", true, null, "\\\\"]}'
    for (let size = 1; size <= text.length; size++) expect(await short(text, 6, size)).to.equal(text)
  })

  it('ends a string after as many bytes, and never within an escape', async () => {
    expect(await short('["12345","x"]', 4)).to.equal('["1234","x"]')
    expect(await short('["123\\"56","x"]', 4)).to.equal('["123\\"","x"]')
    expect(await short('["123\\u00e956","x"]', 4)).to.equal('["123\\u00e9","x"]')
    expect(await short('["1234\\"56\\\\","x"]', 4)).to.equal('["1234","x"]')
    expect(await short('{"12345":1}', 4)).to.equal('{"1234":1}')
  })

  it('is JSON whose strings begin as they did, however the bytes come', async () => {
    const fraction = seededFractions(24)
    const below = (n: number) => Math.floor(fraction() * n)
    const characters = ['a', '"', '\\', '\n', 'é', '€', '😀', '/', '\u0001', '{', ',']
    const string = () =>
      Array.from({ length: below(30) }, () => characters[below(characters.length)]).join('')
    for (let run = 0; run < 500; run++) {
      const strings = Array.from({ length: below(6) }, string)
      const text = JSON.stringify(strings).replaceAll('é', '\\u00e9')
      const longest = 1 + below(25)
      const result: string[] = JSON.parse(await short(text, longest, 1 + below(9)))
      expect(result.length).to.equal(strings.length)
      for (const [at, each] of strings.entries()) {
        const source = Buffer.byteLength(JSON.stringify(each).replaceAll('é', '\\u00e9')) - 2
        if (source <= longest) expect(result[at]).to.equal(each)
        // A character of several bytes may be cut in two.
        else expect(each.startsWith(result[at]!.replace(/\ufffd+$/, ''))).to.equal(true)
      }
    }
  })
})
