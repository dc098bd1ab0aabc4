import { expect } from 'chai'
import { describe, it } from 'mocha'
import { jsonLines } from '../../../operator/kubernetes/json-lines.ts'

async function* pieces(bytes: Buffer, size: number) {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function read(text: string, size: number): Promise<unknown[]> {
  return Array.fromAsync(jsonLines(pieces(Buffer.from(text), size)))
}

describe('lines of JSON', () => {
  const text = '{"a":"é€😀"}\n\n{"b":[1,2]}\n"c"\n'

  it('are the same however the bytes are cut', async () => {
    for (let size = 1; size <= text.length + 8; size++) {
      expect(await read(text, size)).to.deep.equal([{ a: 'é€😀' }, { b: [1, 2] }, 'c'])
    }
  })

  it('end in an error where the stream ends within one, after all complete ones', async () => {
    const seen: unknown[] = []
    const error = await (async () => {
      for await (const line of jsonLines(pieces(Buffer.from('{"a":1}\n{"b"'), 3))) seen.push(line)
    })().catch((caught: Error) => caught.message)
    expect([seen, error]).to.deep.equal([[{ a: 1 }], 'the stream ended within a line'])
  })
})
