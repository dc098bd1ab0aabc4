import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Controller } from '../../../operator/controller/controller.ts'
import { WorkQueue } from '../../../operator/controller/work-queue.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

/** As long as the client of the management API waits for an answer, ms. */
const HANGS_MS = 10_000

/** A controller in virtual time. Passes of the namespaces that begin with `bad` hang, others take 5 ms. */
function fixture() {
  const clock = new ManualClock()
  const queue = new WorkQueue(clock)
  /** When the first pass of each key began. */
  const begun = new Map<string, number>()
  const controller = new Controller({
    queue,
    clock,
    reconciler: {
      reconcile: (key) => {
        if (!begun.has(key)) begun.set(key, clock.monotonic())
        const ms = key.startsWith('bad') ? HANGS_MS : 5
        return new Promise((resolve) => clock.after(ms, () => resolve({ requeueAfterMs: 0 })))
      },
    },
    log: { debug: () => {}, warn: () => {} },
    telemetry: { pass: () => {} },
  })
  controller.start()
  const run = async (ms: number) => {
    for (let step = 0; step < ms / 5; step++) {
      clock.advance(5)
      // What a worker does between two passes takes a few turns of the loop of promises.
      for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    }
  }
  return { clock, queue, begun, run }
}

/** Ms that a key of the namespace `good` waits for its pass, beside that of `others`. */
async function waitOf({ clock, queue, begun, run }: ReturnType<typeof fixture>): Promise<number> {
  const added = clock.monotonic()
  begun.delete('good/orders')
  queue.add('good/orders')
  await run(60_000)
  return (begun.get('good/orders') ?? Number.POSITIVE_INFINITY) - added
}

describe('a namespace whose passes hang', () => {
  it('keeps another one from its pass for no second', async () => {
    const parts = fixture()
    for (let index = 0; index < 100; index++) parts.queue.add(`bad/${index}`)
    await parts.run(20)
    expect(await waitOf(parts)).to.be.below(1_000)
  })

  it('keeps it no longer where there are two of them', async () => {
    const parts = fixture()
    for (const namespace of ['bad-1', 'bad-2'])
      for (let index = 0; index < 100; index++) parts.queue.add(`${namespace}/${index}`)
    await parts.run(20)
    expect(await waitOf(parts)).to.be.below(1_000)
  })

  it('keeps one that is known to be quick no longer where there are fifty', async () => {
    const parts = fixture()
    parts.queue.add('good/known')
    await parts.run(20)
    for (let namespace = 0; namespace < 50; namespace++)
      for (let index = 0; index < 10; index++) parts.queue.add(`bad-${namespace}/${index}`)
    await parts.run(20)
    expect(await waitOf(parts)).to.be.below(1_000)
  })

  it('gets passes itself all the while', async () => {
    const parts = fixture()
    for (let namespace = 0; namespace < 20; namespace++) parts.queue.add(`bad-${namespace}/orders`)
    for (let index = 0; index < 1_000; index++) parts.queue.add(`good/${index}`)
    await parts.run(60_000)
    for (let namespace = 0; namespace < 20; namespace++)
      expect(parts.begun.has(`bad-${namespace}/orders`), `namespace ${namespace}`).to.equal(true)
  })
})

it('the only namespace gets four passes at once, and as many again when they end', async () => {
  const { queue, begun, run } = fixture()
  for (let index = 0; index < 10; index++) queue.add(`bad/${index}`)
  await run(HANGS_MS + 20)
  expect(begun.size, 'one before it was known').to.equal(1 + 4)
  await run(HANGS_MS)
  expect(begun.size).to.equal(1 + 8)
})
