/** An owner whose time of day is wrong, on the real NATS and Postgres: nothing waits for the difference. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { ownersOfEachTest } from './owners.ts'

describe('an owner whose clock is wrong', function () {
  this.timeout(120_000)
  const here = ownersOfEachTest()
  const DAY_MS = 86_400_000

  it('flushes an item within its timeouts while the clock of the broker is ahead', async () => {
    const owner = await here.own({ aheadMs: -DAY_MS })
    await here.ingest([{ key: 'a', n: 1 }])
    await eventually(() => expect(owner.sent).to.have.length(1))
  })

  it('retries within the back-off once its clock is set back', async () => {
    let aheadMs = DAY_MS
    const statuses = [500, 200]
    const owner = await here.own({
      aheadMs: () => aheadMs,
      destination: () => statuses.shift()!,
      backoffMs: 500,
    })
    await here.ingest([{ key: 'a', n: 1 }])
    await eventually(async () => {
      const types = (await here.records()).map(({ record }) => record.type)
      expect(types).to.include('attempt')
    })
    aheadMs = 0
    await eventually(() => expect(owner.sent).to.have.length(2))
    await here.done(1)
  })
})
