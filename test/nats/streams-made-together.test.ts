/** Several nodes that start at once on a cluster of brokers: one of them makes the logs, and none lowers them afterwards. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import type { JetStreamManager } from 'nats'

import type { Connection } from '../../internal/nats/connection.ts'
import { ensureStreams } from '../../internal/nats/streams/streams.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { eventually } from '../support/eventually.ts'
import { ownNatsCluster } from '../support/servers.ts'
import { connectTo } from './support.ts'

const OPTIONS = { clock: systemClock(), shards: 4, replicas: 3 }

describe('streams that several nodes make', function () {
  this.timeout(120_000)
  let cluster: Awaited<ReturnType<typeof ownNatsCluster>>
  let nodes: Connection[]
  let manager: JetStreamManager

  before(async () => {
    cluster = await ownNatsCluster()
    nodes = await Promise.all(cluster.urls.map(async (url) => (await connectTo(url)).connection))
    manager = await nodes[0]!.nats.jetstreamManager({ timeout: 30_000 })
  })

  after(async () => {
    await Promise.all(nodes.map((node) => node.close()))
    await cluster.stop()
  })

  afterEach(async () => {
    for (const name of Object.keys(await sizes())) await manager.streams.delete(name)
    // The broker frees the room later than it answers.
    await eventually(async () => expect((await manager.getAccountInfo()).storage).to.equal(0), {
      timeoutMs: 30_000,
    })
  })

  /** A list with the settings leaves out streams whose leader does not answer in time. One of the names is complete. */
  async function sizes(): Promise<Record<string, number>> {
    const all: Record<string, number> = {}
    for await (const name of manager.streams.names()) {
      const { config } = await manager.streams.info(name)
      all[name] = config.max_bytes
    }
    return all
  }

  /** Sizes that were asked for logs that were there, while `work` ran. */
  async function lowered(work: () => Promise<unknown>): Promise<string[]> {
    const found: string[] = []
    const watch = nodes[0]!.nats.subscribe('$JS.API.STREAM.UPDATE.*', {
      callback: (_, { subject, data }) => {
        const { max_bytes, metadata } = JSON.parse(Buffer.from(data).toString())
        const name = subject.split('.').at(-1)!
        if (/^(INBOX|JOURNAL|ARCHIVE)_/.test(name) && !metadata?.['penstock.complete'])
          found.push(`${name} ${max_bytes}`)
      },
    })
    await work()
    watch.unsubscribe()
    return found
  }

  const apart = (gapMs: number) => () =>
    Promise.all(
      nodes.map(async (node, number) => {
        await delay(number * gapMs)
        await ensureStreams(node, OPTIONS)
      }),
    )

  it('have the size that one node alone would give them, and are not lowered', async () => {
    expect(await lowered(() => ensureStreams(nodes[0]!, OPTIONS))).to.deep.equal([])
    const alone = await sizes()
    expect(Object.keys(alone)).to.have.length(12)
    for (const gapMs of [0, 300, 800]) {
      for (const name of Object.keys(await sizes())) await manager.streams.delete(name)
      await delay(1_000)
      expect(await lowered(apart(gapMs)), `${gapMs} ms apart`).to.deep.equal([])
      expect(await sizes(), `${gapMs} ms apart`).to.deep.equal(alone)
    }
  })

  it('get the size of those that are there already', async () => {
    await ensureStreams(nodes[0]!, OPTIONS)
    const whole = await sizes()
    for (const name of ['INBOX_3', 'JOURNAL_3', 'ARCHIVE_3']) await manager.streams.delete(name)
    for (const name of Object.keys(await sizes())) {
      const { config } = await manager.streams.info(name)
      const { 'penstock.complete': _, ...metadata } = config.metadata ?? {}
      await manager.streams.update(name, { metadata })
    }
    expect(await lowered(() => ensureStreams(nodes[0]!, OPTIONS))).to.deep.equal([])
    expect(await sizes()).to.deep.equal(whole)
  })

  it('get archives beside logs in use, which keep their sizes', async () => {
    await ensureStreams(nodes[0]!, OPTIONS)
    const whole = await sizes()
    await nodes[0]!.nats.request('items.0.mixed', 'x', { timeout: 10_000 })
    const archives = Object.keys(whole).filter((name) => name.startsWith('ARCHIVE_'))
    for (const name of archives) await manager.streams.delete(name)
    expect(await lowered(apart(0))).to.deep.equal([])
    expect(await sizes()).to.deep.equal(whole)
  })

  it('are made also when the node that had the lock has ended: 45 s after it took it', async () => {
    const left = {
      name: 'PENSTOCK-ROOM',
      subjects: ['penstock-room'],
      metadata: { 'penstock.room': 'another' },
    }
    await manager.streams.add(left)
    await ensureStreams(nodes[0]!, OPTIONS)
    expect(Object.keys(await sizes())).to.have.length(12)
  })

  it('are not made beside somebody else’s stream of the name of the lock, which stays', async () => {
    await manager.streams.add({ name: 'PENSTOCK-ROOM', subjects: ['chat'] })
    const refusal = await ensureStreams(nodes[0]!, OPTIONS).catch((error: Error) => error)
    expect(refusal).to.have.property(
      'message',
      'stream PENSTOCK-ROOM is not of Penstock: remove or rename it',
    )
    expect(Object.keys(await sizes())).to.deep.equal(['PENSTOCK-ROOM'])
  })
})
