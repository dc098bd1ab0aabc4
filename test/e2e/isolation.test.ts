/**
 * A destination that never answers is the trouble of its own buffer alone (docs/architecture/protocol.md, "Attempts"
 * and "Delivery").
 */
import { expect } from 'chai'
import { after, describe, it } from 'mocha'

import { type Sink, startSink } from '../support/sink.ts'
import { type Channel, harness, NEVER_DUE, SOON } from './harness.ts'

const HANGING_GROUPS = 100

describe('a destination that hangs', function () {
  this.timeout(120_000)
  const on = harness()
  const sinks: Sink[] = []

  after(async () => {
    for (const sink of sinks) await sink.close()
  })

  it('for 100 groups delays no batch of another buffer, not even one to the same host', async () => {
    const sink = await startSink()
    sinks.push(sink)
    const hanging = await on.channel({ batch: { ...NEVER_DUE, maxItems: 1 } }, { sink })
    const neighbour = await on.channel({ batch: SOON }, { sink })
    const stranger = await on.channel({ batch: SOON })
    hanging.answer({ fault: 'hang' })
    await Promise.all(range(HANGING_GROUPS).map((n) => hanging.send({ group: `g${n}` })))
    // As many at once as one buffer gets of one origin's connections; the others wait behind them.
    await sink.waitFor(() => hanging.requests().length >= 32)
    for (const round of [1, 2, 3]) {
      for (const other of [stranger, neighbour]) {
        await Promise.all(range(20).map((n) => other.send({ group: `g${n}` })))
        await expectSoon(other, round * 20)
      }
    }
    expect(hanging.events('delivery'), 'none of the hanging attempts has ended meanwhile').to.have.length(0)
    await hanging.patch({ enabled: false })
  })
})

/** Its batches arrive long before the first hanging attempt can end: nobody waited for one. */
async function expectSoon(channel: Channel, count: number): Promise<void> {
  await channel.untilRequests(count, 5_000)
  const flushes = await channel.untilEvents('flush', count)
  for (const { reason } of flushes) expect(reason).to.equal('idle')
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}
