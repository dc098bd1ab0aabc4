/** Three servers, one of which stands still with a pack in its sockets while a retry of it is stored by the others. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { connect, headers, type NatsConnection } from 'nats'

import type { NatsCluster } from '../../internal/embedded/nats-cluster.ts'
import { ensureStreams } from '../../internal/nats/streams/streams.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { eventually } from '../support/eventually.ts'
import { ownNatsCluster } from '../support/servers.ts'
import { connectTo, STORE_BYTES_PER_SHARD } from './support.ts'

/** Longer than any retry, and than the 30 s by which purges lag. */
const STILL_MS = 35_000

describe('a server of three that stands still', function () {
  this.timeout(120_000)
  let cluster: NatsCluster
  const connections: NatsConnection[] = []

  before(async () => {
    cluster = await ownNatsCluster()
    const { connection } = await connectTo(cluster.urls[0]!)
    const options = { clock: systemClock(), shards: 1, replicas: 3, storeBytes: STORE_BYTES_PER_SHARD }
    await eventually(() => ensureStreams(connection, options).then(() => true), {
      timeoutMs: 60_000,
      everyMs: 500,
    })
    await connection.close()
    for (const url of cluster.urls) connections.push(await connectToOne(url))
  })

  after(async () => {
    await Promise.all(connections.map((connection) => connection.close().catch(() => {})))
    await cluster.stop()
  })

  /** To that server and no other. */
  function connectToOne(url: string): Promise<NatsConnection> {
    const { host, username, password } = new URL(url)
    return connect({ servers: host, user: username, pass: password, ignoreClusterUpdates: true })
  }

  it('stores nothing of it again when it goes on', async () => {
    // Made before a server stands still: making one asks the leader of all servers, which may be that one.
    const managers = await Promise.all(connections.map((connection) => connection.jetstreamManager()))
    const leader = (await managers[0]!.streams.info('INBOX_0')).cluster?.leader
    const still = cluster.members.findIndex(({ name }) => name !== leader)
    const other = cluster.members.findIndex((_, at) => at !== still)
    const append = (at: number, id: string) => {
      const named = headers()
      named.set('Nats-Msg-Id', id)
      connections[at]!.publish('items.0.mixed', id, { headers: named })
    }
    const stored = async () => (await managers[other]!.streams.info('INBOX_0')).state.messages
    cluster.members[still]!.server.kill('SIGSTOP')
    try {
      // A signal takes effect in its own time.
      await delay(250)
      append(still, 'pack')
      append(still, 'behind it')
      await delay(500)
      append(other, 'pack')
      await eventually(async () => expect(await stored()).to.equal(1), { timeoutMs: 20_000 })
      await delay(STILL_MS)
    } finally {
      cluster.members[still]!.server.kill('SIGCONT')
    }
    // That it handed on what it held shows in what nobody else has stored.
    await eventually(async () => expect(await stored()).to.be.above(1), { timeoutMs: 20_000 })
    await delay(1_000)
    await eventually(async () => expect(await stored()).to.equal(2), { timeoutMs: 5_000 })
  })
})
