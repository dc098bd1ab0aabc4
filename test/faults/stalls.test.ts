import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import type { Stall } from './history.ts'
import { noteStalls } from './stalls.ts'

describe('stalls', () => {
  let end = () => {}
  afterEach(() => end())

  it('are noticed when nothing runs for a while, with their time', async () => {
    const stalls: Stall[] = []
    end = noteStalls(stalls)
    const from = Date.now()
    while (Date.now() < from + 1_000);
    const to = Date.now()
    await eventually(() => stalls.length > 0)
    expect(stalls[0]!.from).to.be.at.most(from)
    expect(stalls[0]!.to).to.be.at.least(to)
  })
})
