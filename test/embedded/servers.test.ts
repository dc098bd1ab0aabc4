import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { openDataFolder } from '../../internal/embedded/data-folder.ts'
import { type EmbeddedLog, EmbeddedStartError } from '../../internal/embedded/ports.ts'
import { isRunning } from '../../internal/embedded/process-identity.ts'
import { startEmbedded } from '../../internal/embedded/servers.ts'
import { natsBinary, natsServer, postgresServer } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

const log = { info: () => {}, warn: () => {}, error: () => {} }
const onLost = () => {}

describe('the embedded servers', () => {
  it('start together, and stop without leaving anything', async () => {
    const { pids, noting } = notes()
    const dataDir = tempFolder()
    const natsServerBin = await natsBinary()
    const embedded = await startEmbedded({ dataDir, sync: 'always', log: noting, natsServerBin, onLost })
    expect(embedded.natsUrl).to.match(/^nats:\/\/[^:]+:[^@]+@127\.0\.0\.1:\d+$/)
    expect(embedded.databaseUrl).to.match(/^postgres:\/\/[^:]+:[^@]+@127\.0\.0\.1:\d+\/penstock$/)
    expect(pids.filter(isRunning)).to.have.length(2)
    await embedded.stop()
    expect(pids.filter(isRunning)).to.deep.equal([])
    openDataFolder(dataDir).release()
  })

  it('are left out where others are named', async () => {
    const dataDir = tempFolder()
    const [natsUrl, databaseUrl] = [(await natsServer()).url, (await postgresServer()).url]
    const embedded = await startEmbedded({ dataDir, sync: 'always', log, natsUrl, databaseUrl, onLost })
    expect(embedded).to.include({ natsUrl, databaseUrl, natsBinary: undefined })
    expect(existsSync(join(dataDir, 'nats'))).to.equal(false)
    await embedded.stop()
    expect((await postgresServer()).running).to.equal(true)
  })

  it('leave nothing behind when one of them cannot start', async () => {
    const { pids, noting } = notes()
    const dataDir = tempFolder()
    const start = startEmbedded({
      dataDir,
      sync: 'always',
      log: noting,
      natsServerBin: '/nowhere/nats-server',
      onLost,
    })
    const error = await start.catch((reason) => reason)
    expect(error).to.be.instanceOf(EmbeddedStartError)
    expect(error.message).to.include('NATS_SERVER_BIN')
    expect(pids.filter(isRunning)).to.deep.equal([])
    openDataFolder(dataDir).release()
  })

  it('are given up with the start', async () => {
    const dataDir = tempFolder()
    const natsServerBin = await natsBinary()
    const signal = AbortSignal.abort()
    const start = startEmbedded({ dataDir, sync: 'always', log, natsServerBin, onLost, signal })
    expect(await start.catch((reason) => reason)).to.be.instanceOf(Error)
    openDataFolder(dataDir).release()
  })
})

/** A log that keeps the ids of the processes it is told of. */
function notes(): { pids: number[]; noting: EmbeddedLog } {
  const pids: number[] = []
  const info = ({ pid }: Record<string, unknown>) => {
    if (typeof pid === 'number') pids.push(pid)
  }
  return { pids, noting: { ...log, info } }
}
