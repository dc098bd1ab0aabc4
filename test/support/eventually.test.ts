import { expect } from 'chai'
import { describe, it } from 'mocha'

import { untilNone } from './eventually.ts'

const OPTIONS = { stillMs: 60, timeoutMs: 2_000, everyMs: 5 }

describe('a wait until nothing is left', () => {
  it('goes on for longer than a stand-still may last, as long as something moves', async () => {
    const started = performance.now()
    // Steps that are much shorter than a stand-still, for machines that are late.
    const left = () => Math.max(0, 10 - Math.floor((performance.now() - started) / 60))
    await untilNone(left, { ...OPTIONS, stillMs: 300 })
    expect(performance.now() - started).to.be.at.least(600)
  })

  it('ends with what is left when it stands still, also when its count fails', async () => {
    const ends = [
      untilNone(() => 3, OPTIONS),
      untilNone(() => Promise.reject(new Error('no answer')), OPTIONS),
    ]
    const [still, failing] = await Promise.all(ends.map((end) => end.then(() => '', String)))
    expect(still).to.match(/3 are left/)
    expect(failing).to.match(/no answer/)
  })

  it('does not wait for ever on what never ends', async () => {
    let count = 1_000_000
    const end = untilNone(() => count--, { ...OPTIONS, timeoutMs: 150 })
    expect(await end.then(() => '', String)).to.match(/are left/)
  })
})
