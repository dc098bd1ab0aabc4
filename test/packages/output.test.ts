/** What the command line shows of texts that strangers sent. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { jsonLine, jsonText, printable, table } from '../../packages/cli/src/output.ts'

describe('the output of the command line', () => {
  const hostile = 'a\u001b[2J\u009b31m\u0007\r\nb\u202e\u007f'

  it('steers no terminal', () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not come out.
    const steering = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/
    for (const text of [
      printable(hostile),
      jsonLine({ hostile }),
      jsonText({ hostile }),
      table(['A'], [[hostile]]),
    ])
      expect(steering.test(text), JSON.stringify(text)).to.equal(false)
    expect(printable(hostile)).to.equal('a\\u001b[2J\\u009b31m\\u0007\\u000d\\u000ab\\u202e\\u007f')
  })

  it('is still the same JSON', () => {
    expect(JSON.parse(jsonLine({ hostile, name: 'Åsa' }))).to.deep.equal({ hostile, name: 'Åsa' })
    expect(JSON.parse(jsonText([{ hostile }]))).to.deep.equal([{ hostile }])
  })

  it('has columns', () => {
    expect(
      table(
        ['A', 'LONG'],
        [
          ['xyz', 1],
          ['q', ''],
        ],
      ),
    ).to.equal('A    LONG\nxyz  1\nq')
  })
})
