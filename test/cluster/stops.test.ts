/**
 * Credits over graceful stops of the roles under load (docs/architecture/protocol.md, "Unsettled credits"): a drain is no
 * fault, so none is given away.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { DeliveryBatch } from '../e2e/harness.ts'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, startSink } from '../support/sink.ts'

const SENDERS = 8
const GRANTED = 1_000_000
const PATIENT = { timeoutMs: 60_000, everyMs: 100 }

describe('credits of a cluster whose nodes are stopped under load', function () {
  this.timeout(240_000)
  let cluster: Cluster
  let sink: Sink
  let admin: ClusterNode
  let ingress: ClusterNode
  let actor: ClusterNode
  let projectId: string
  /** Message ids that were answered 202. That a repeat is one may be told too late for its answer. */
  const accepted = new Set<string>()
  let stopped = false
  let senders: Promise<void>[] = []

  before(async () => {
    sink = await startSink()
    cluster = await Cluster.create({ PENSTOCK_INITIAL_CREDITS: String(GRANTED) })
    await (await cluster.spawn('migrate')).exited()
    admin = await cluster.start('admin')
    actor = await cluster.start('actor')
    ingress = await cluster.start('ingress')
    projectId = await cluster.api(admin).createProject()
    await cluster.api(admin).createBuffer(projectId, 'orders', {
      batch: { maxItems: 20, idleTimeoutMs: 200, maxWaitFromFirstMs: 1_000 },
      delivery: { url: sink.url('/orders') },
    })
    senders = Array.from({ length: SENDERS }, (_, index) => sendAll(`k${index}`))
  })
  after(async () => {
    stopped = true
    await Promise.all(senders)
    await cluster?.stop()
    await sink?.close()
  })

  /** One after the other until the end; each third one is sent under the id of the one before. */
  async function sendAll(group: string): Promise<void> {
    let messageId = ''
    for (let n = 0; !stopped; n++) {
      if (n % 3 !== 2) messageId = randomUUID()
      await send({ group, n, messageId })
    }
  }

  async function send(payload: { group: string; n: number; messageId: string }): Promise<void> {
    const answer = await cluster
      .api(ingress)
      .ingest(projectId, 'orders', payload)
      .catch(() => undefined)
    if (answer?.status === 202) accepted.add(payload.messageId)
    else await delay(20)
  }

  async function underLoad(): Promise<void> {
    const enough = accepted.size + 100
    await eventually(() => accepted.size >= enough, PATIENT)
  }

  function delivered(): { ids: Set<string>; items: Set<string> } {
    const bodies = sink.requests('/orders').map((request) => request.json() as DeliveryBatch)
    const items = bodies.flatMap((body) => body.items)
    return {
      ids: new Set(items.map(({ messageId }) => messageId)),
      items: new Set(items.map(({ payload }) => `${payload.group}/${payload.n}`)),
    }
  }

  it('stops the ingress alone, and the actor alone', async () => {
    await underLoad()
    expect(await ingress.stop()).to.equal(0)
    ingress = await cluster.start('ingress')
    await underLoad()
    expect(await actor.stop()).to.equal(0)
    actor = await cluster.start('actor')
    await underLoad()
  })

  it('stops both at once', async () => {
    expect(await Promise.all([actor.stop(), ingress.stop()])).to.deep.equal([0, 0])
    actor = await cluster.start('actor')
    ingress = await cluster.start('ingress')
    await underLoad()
    expect(await Promise.all([ingress.stop(), actor.stop()])).to.deep.equal([0, 0])
    actor = await cluster.start('actor')
    ingress = await cluster.start('ingress')
    await underLoad()
  })

  it('and each item that went out was paid, and nothing else', async () => {
    stopped = true
    await Promise.all(senders)
    await eventually(() => expect([...accepted.difference(delivered().ids)]).to.deep.equal([]), PATIENT)
    await eventually(async () => {
      const { credits } = await cluster.api(admin).credits()
      expect(GRANTED - credits).to.equal(delivered().items.size)
    }, PATIENT)
  })
})
