/** A destination that is dead in every way (fault matrix, rows 16 and 17): it costs others nothing and leaves nothing open. */
import { expect } from 'chai'
import { after, describe, it } from 'mocha'

import { type Sink, type SinkAnswer, startSink } from '../support/sink.ts'
import { type Channel, harness, NEVER_DUE, SOON } from './harness.ts'

const GROUPS = 1_000
const AT_ONCE = 50

describe('a dead destination', function () {
  this.timeout(120_000)
  const on = harness()
  const sinks: Sink[] = []

  after(async () => {
    for (const sink of sinks) await sink.close()
  })

  async function ownSink(): Promise<Sink> {
    const sink = await startSink()
    sinks.push(sink)
    return sink
  }

  it('of every kind has failed when its 10 s are over, and keeps no connection', async () => {
    const kinds: SinkAnswer[] = [
      { fault: 'hang' },
      { fault: 'slow-head' },
      { fault: 'reset' },
      { fault: 'close' },
      { fault: 'half-head' },
      { fault: 'garbage' },
      { fault: 'half', status: 500 },
      { fault: 'endless', status: 500 },
      { fault: 'drip', status: 500 },
    ]
    await Promise.all(
      kinds.map(async (answer) => {
        const sink = await ownSink()
        const fields = { batch: { ...NEVER_DUE, maxItems: 1 }, throughput: { maxAttempts: 1 } }
        const channel = await on.channel(fields, { sink })
        channel.answer(answer)
        await channel.send({ group: 'a' })
        const [item] = await channel.untilDead(1, 30_000)
        expect(item, answer.fault).to.include({ lastStatusCode: answer.status ?? 0, itemCount: 1 })
        await sink.waitFor((_, open) => open === 0, 15_000)
        expect(channel.requests(), answer.fault).to.have.length(1)
      }),
    )
  })

  it('of 1,000 groups makes no batch of others fail or wait behind it, at its host or elsewhere', async () => {
    const sink = await ownSink()
    const dead = await on.channel({ batch: { ...NEVER_DUE, maxItems: 1 } }, { sink })
    const neighbour = await on.channel({ batch: SOON }, { sink })
    const stranger = await on.channel({ batch: SOON })
    dead.answer({ fault: 'hang' })
    const [first] = groups(1)
    await dead.send({ group: first! })
    await dead.untilRequests(1)
    // Half of them before the others, half of them beside.
    await sendAll(dead, groups(GROUPS / 2).slice(1))
    await Promise.all([
      sendAll(dead, groups(GROUPS).slice(GROUPS / 2)),
      ...[neighbour, stranger].map((channel) => sendAll(channel, groups(100))),
    ])
    for (const channel of [neighbour, stranger]) {
      const batches = await channel.untilItems(100, 20_000)
      expect(batches).to.have.length(100)
      for (const { outcome, attempt } of await channel.untilEvents('delivery', 100))
        expect([outcome, attempt]).to.deep.equal(['delivered', 1])
    }
    expect(dead.requests().length, 'most of the dead one’s batches still wait for their turn').to.be.below(
      GROUPS / 2,
    )
    expect(dead.events('delivery').filter(({ outcome }) => outcome === 'delivered')).to.deep.equal([])
    await dead.patch({ enabled: false })
  })
})

function groups(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `g${index}`)
}

async function sendAll(channel: Channel, names: readonly string[]): Promise<void> {
  for (let at = 0; at < names.length; at += AT_ONCE) {
    await Promise.all(names.slice(at, at + AT_ONCE).map((group) => channel.send({ group })))
  }
}
