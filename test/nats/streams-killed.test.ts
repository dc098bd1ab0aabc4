/**
 * A cluster of brokers whose servers are all killed soon after the streams were made. Each server then reads in the log of its cluster
 * how every stream was made and changed since. One that does not fit at its turn loses its Raft log (NATS before 2.14.3).
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { ensureStreams } from '../../internal/nats/streams/streams.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { eventually } from '../support/eventually.ts'
import { ownNatsCluster } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { connectTo } from './support.ts'

const LOGS = ['INBOX_0', 'INBOX_1', 'JOURNAL_0', 'JOURNAL_1', 'ARCHIVE_0', 'ARCHIVE_1']

describe('streams of a cluster that is killed', () => {
  it('fit its servers again, however they were sized', async () => {
    const dir = join(tempFolder('streams-killed'), 'nats')
    const { members, urls, stop } = await ownNatsCluster({ dir })
    const { connection } = await connectTo(urls[0]!)
    const manager = await connection.nats.jetstreamManager({ timeout: 30_000 })
    // Several nodes at once, and nothing says how large the store is.
    const options = { clock: systemClock(), shards: 2, replicas: 3 }
    await Promise.all([ensureStreams(connection, options), ensureStreams(connection, options)])
    for (const { server } of members) server.kill('SIGKILL')
    await Promise.all(members.map(({ server }) => server.exited))
    await Promise.all(members.map(({ server }) => server.restart()))
    await eventually(
      async () => {
        for (const name of LOGS) expect((await manager.streams.info(name)).cluster?.leader).to.be.a('string')
      },
      { timeoutMs: 60_000, everyMs: 200 },
    )
    for (const { name } of members)
      expect(readFileSync(join(dir, name, 'nats.log'), 'utf8')).not.to.contain('error updating stream')
    await connection.close()
    await stop()
  })
})
