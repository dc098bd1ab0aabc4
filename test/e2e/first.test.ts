/** The example of test/README.md: one promise of the service, seen from outside. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { harness, NEVER_DUE } from './harness.ts'

describe('two webhooks of one group', function () {
  this.timeout(60_000)
  const on = harness()

  it('come out as one batch, in the order in which they were sent', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 2 } })
    await channel.sendAll([
      { group: 'ada', n: 1 },
      { group: 'ada', n: 2 },
    ])
    const [batch] = await channel.untilBatches(1)
    expect(batch!.items.map(({ payload }) => payload.n)).to.deep.equal([1, 2])
  })
})
