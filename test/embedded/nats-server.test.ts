import { spawn } from 'node:child_process'
import { chownSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { connect, type NatsConnection } from 'nats'

import { eventually } from '../support/eventually.ts'
import { accessTo, ownNats } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('the embedded NATS server', () => {
  it('keeps what it acknowledged, and its address, over a kill and a restart', async () => {
    const server = await ownNats({ sync: 'always' })
    await withConnection(accessTo(server).options, storeOne)
    const { url, pid } = server
    server.kill('SIGKILL')
    await server.restart()
    expect(server.url).to.equal(url)
    expect(server.pid).to.not.equal(pid)
    expect(await withConnection(accessTo(server).options, countStored)).to.equal(1)
    await server.stop()
  })

  it('lets nobody in without its password, and listens on 127.0.0.1 alone', async () => {
    const server = await ownNats()
    const anonymous = await connect({ servers: `127.0.0.1:${server.port}`, reconnect: false }).catch(
      (error) => error,
    )
    const refused = await connect({
      ...accessTo(server).options,
      servers: `127.0.0.2:${server.port}`,
    }).catch((error) => error)
    expect(anonymous.message).to.match(/authorization/i)
    expect(refused.code).to.equal('CONNECTION_REFUSED')
    await server.stop()
  })

  it('is no root, and knows nothing of our environment', async () => {
    process.env.PENSTOCK_SECRET_KEY = 'a secret of ours'
    try {
      const server = await ownNats()
      const told = readFileSync(`/proc/${server.pid}/environ`, 'utf8').split('\0').filter(Boolean)
      expect(told.map((variable) => variable.split('=')[0]).sort()).to.deep.equal(['LC_ALL', 'PATH'])
      const [, ...ids] = /^Uid:\s+(\d+)\s+(\d+)/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))!
      const own = process.getuid!()
      expect(ids.map((id) => (own === 0 ? Number(id) !== 0 : Number(id) === own))).to.deep.equal([true, true])
      await server.stop()
    } finally {
      delete process.env.PENSTOCK_SECRET_KEY
    }
  })

  it('goes on with the data of one that ran as we do', async function () {
    if (process.getuid?.() !== 0) this.skip()
    const dir = join(tempFolder(), 'nats')
    const first = await ownNats({ dir, sync: 'always' })
    await withConnection(accessTo(first).options, storeOne)
    await first.stop()
    for (const each of [dir, ...readdirSync(dir, { recursive: true }).map((name) => join(dir, String(name)))])
      chownSync(each, 0, 0)
    const server = await ownNats({ dir })
    expect(await withConnection(accessTo(server).options, countStored)).to.equal(1)
    await server.stop()
  })

  it('stops the server that a killed process left on its folder, and goes on with its data', async () => {
    const dir = join(tempFolder(), 'nats')
    const left = await ownNats({ dir, sync: 'always' })
    await withConnection(accessTo(left).options, storeOne)
    const server = await ownNats({ dir })
    await eventually(() => !left.running)
    expect(await withConnection(accessTo(server).options, countStored)).to.equal(1)
    await server.stop()
  })

  it('stops one that was killed off its parent before it had written its id', async () => {
    const dir = join(tempFolder(), 'nats')
    const left = await ownNats({ dir })
    rmSync(join(dir, 'nats.pid'))
    const server = await ownNats({ dir })
    expect(server.port, 'two servers would share the store').to.equal(left.port)
    await eventually(() => !left.running)
    await server.stop()
  })

  it('spares a stranger that has the recorded process id by now', async () => {
    const dir = join(tempFolder(), 'nats')
    const stranger = spawn('sleep', ['600'])
    mkdirSync(dir)
    writeFileSync(join(dir, 'nats.pid'), String(stranger.pid))
    const server = await ownNats({ dir })
    expect(stranger.exitCode).to.equal(null)
    expect(stranger.signalCode).to.equal(null)
    stranger.kill()
    await server.stop()
  })

  it('moves to another port when its own is taken', async () => {
    const dir = join(tempFolder(), 'nats')
    const first = await ownNats({ dir })
    await first.stop()
    const squatter = createServer().listen(first.port, '127.0.0.1')
    await eventually(() => squatter.listening)
    const second = await ownNats({ dir })
    squatter.close()
    expect(second.port).to.not.equal(first.port)
    expect(Number(readFileSync(join(dir, 'port'), 'utf8'))).to.equal(second.port)
    await second.stop()
  })

  it('comes back by itself when it dies, and gives up when it keeps dying', async () => {
    const server = await ownNats()
    const lost: Error[] = []
    server.keepRunning((error) => lost.push(error))
    for (let deaths = 0; deaths < 3; deaths++) await dieAndReturn(server)
    server.kill('SIGKILL')
    await eventually(() => lost.length === 1)
    expect(lost[0]?.message).to.include('nats')
    await server.stop()
  })
})

async function dieAndReturn(server: Awaited<ReturnType<typeof ownNats>>): Promise<void> {
  const { pid } = server
  server.kill('SIGKILL')
  await eventually(() => server.pid !== pid && server.running)
}

async function withConnection<T>(
  options: object,
  use: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const connection = await connect(options)
  try {
    return await use(connection)
  } finally {
    await connection.close()
  }
}

async function storeOne(connection: NatsConnection): Promise<void> {
  await (await connection.jetstreamManager()).streams.add({ name: 'KEPT', subjects: ['kept'] })
  await connection.jetstream().publish('kept', 'text')
}

async function countStored(connection: NatsConnection): Promise<number> {
  return (await (await connection.jetstreamManager()).streams.info('KEPT')).state.messages
}
