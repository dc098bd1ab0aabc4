import { existsSync, readFileSync, statSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'

import { openDataFolder } from '../../internal/embedded/data-folder.ts'
import { freePort } from '../../internal/embedded/port.ts'
import { addressIn } from '../../internal/embedded/postgres-server.ts'
import { isRunning } from '../../internal/embedded/process-identity.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { eventually } from '../support/eventually.ts'
import { type Service, type ServiceOptions, startService, untilHealthy } from '../support/service.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('npm start', function () {
  this.timeout(240_000)
  const running: Service[] = []

  afterEach(async () => {
    for (const { child, exited } of running.splice(0)) {
      child.kill('SIGTERM')
      await exited()
    }
  })

  async function start(options: ServiceOptions): Promise<Service> {
    const service = await startService(options)
    running.push(service)
    return service
  }

  it('brings the service up on a bare data folder, and SIGTERM ends all of it with 0', async () => {
    const dataDir = tempFolder('data')
    const service = await start({ dataDir, npm: true })
    await untilHealthy(service)
    expect((await fetch(`${service.opsUrl}/live`)).status).to.equal(200)
    await eventually(async () => (await fetch(`${service.opsUrl}/ready`)).status === 200)
    expect(await (await fetch(`${service.opsUrl}/metrics`)).text()).to.include('target_info')
    const servers = serverPids(dataDir)
    service.child.kill('SIGTERM')
    expect(await service.exited(), service.output()).to.equal(0)
    expect(servers.filter(isRunning)).to.deep.equal([])
    openDataFolder(dataDir).release()
  })

  it('knows the owner keys of its configuration from its first answer on', async () => {
    const keys = Array.from({ length: 50 }, (_, n) => `svk_${String(n).padStart(48, '0')}`)
    const port = await freePort()
    const ownerKeys = keys.map((key, n) => `customer-${n}=${key}`).join(',')
    const env = { PENSTOCK_PORT: String(port), PENSTOCK_OWNER_KEYS: ownerKeys }
    await start({ dataDir: tempFolder('data'), env })
    const ask = () =>
      fetch(`http://127.0.0.1:${port}/v1/admin/credits`, { headers: { 'X-API-Key': keys.at(-1)! } })
    const first = await eventually(ask, { timeoutMs: 120_000, everyMs: 1 })
    expect(first.status).to.equal(200)
  })

  it('makes its owner key only once it listens, and keeps it in its file', async () => {
    const dataDir = tempFolder('data')
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    const env = { PENSTOCK_PORT: String(port) }
    const refused = await start({ dataDir, env })
    expect(await refused.exited()).to.equal(1)
    expect(refused.output()).to.include('PENSTOCK_PORT: ')
    expect(existsSync(join(dataDir, 'owner-key'))).to.equal(false)
    await new Promise((resolve) => taken.close(resolve))
    const service = await start({ dataDir, env })
    await untilHealthy(service)
    const headers = { 'X-API-Key': readFileSync(join(dataDir, 'owner-key'), 'utf8').trim() }
    expect((await fetch(`${service.url}/v1/admin/whoami`, { headers })).status).to.equal(200)
  })

  it('says where the way in is until a key was used, also at later starts', async () => {
    const dataDir = tempFolder('data')
    const way = `Owner key of customer "local" is in ${join(dataDir, 'owner-key')}`
    const again = async () => {
      const service = await start({ dataDir })
      await untilHealthy(service)
      return service
    }
    const end = async (service: Service) => {
      service.child.kill('SIGTERM')
      expect(await service.exited()).to.equal(0)
      return service.output()
    }
    for (let n = 0; n < 2; n++)
      expect(await end(await again()))
        .to.include(way)
        .and.to.include('npm run account -- local')
    const used = await again()
    const headers = { 'X-API-Key': readFileSync(join(dataDir, 'owner-key'), 'utf8').trim() }
    expect((await fetch(`${used.url}/v1/admin/credits`, { headers })).status).to.equal(200)
    await end(used)
    const output = await end(await again())
    expect(output).to.include('/docs').and.not.to.include(way)
    expect(output).not.to.include('npm run account')
  })

  it('writes JSON lines to standard output, and nothing else', async () => {
    const service = await start({ dataDir: tempFolder('data') })
    const written: Buffer[] = []
    service.child.stdout?.on('data', (chunk: Buffer) => written.push(chunk))
    await untilHealthy(service)
    service.child.kill('SIGTERM')
    await service.exited()
    const lines = Buffer.concat(written).toString('utf8').trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).msg)).to.include.members(['starting', 'ready', 'stopped'])
    expect(service.output()).to.include('Penstock listens on')
  })

  it('keeps what it generated to its owner', async () => {
    const dataDir = tempFolder('data')
    await untilHealthy(await start({ dataDir }))
    for (const secret of ['nats/password', 'postgres/password', 'nats/nats.conf']) {
      expect(statSync(join(dataDir, secret)).mode & 0o077, secret).to.equal(0)
    }
  })

  it('is refused on a data folder that another instance uses, in one line', async () => {
    const dataDir = tempFolder('data')
    const first = await start({ dataDir })
    await untilHealthy(first)
    const second = await start({ dataDir })
    expect(await second.exited()).to.equal(1)
    expect(second.output()).to.include(`the data folder ${dataDir} is in use by process ${first.child.pid}`)
    expect((await fetch(`${first.url}/health`)).status).to.equal(200)
  })

  it('recovers by itself from a kill that leaves its servers behind', async () => {
    const dataDir = tempFolder('data')
    const killed = await start({ dataDir })
    await untilHealthy(killed)
    const left = serverPids(dataDir)
    killed.child.kill('SIGKILL')
    await killed.exited()
    expect(left.filter(isRunning)).to.deep.equal(left)
    await untilHealthy(await start({ dataDir }))
    expect(left.filter(isRunning)).to.deep.equal([])
    expect(serverPids(dataDir).every(isRunning)).to.equal(true)
  })

  it('ends with 0 and leaves no server when it is stopped while it still starts', async () => {
    const dataDir = tempFolder('data')
    const service = await start({ dataDir })
    await eventually(() => existsSync(join(dataDir, 'postgres', 'data', 'postmaster.pid')), {
      timeoutMs: 30_000,
    })
    const postgres = Number.parseInt(
      readFileSync(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8'),
      10,
    )
    service.child.kill('SIGTERM')
    expect(await service.exited(), service.output()).to.equal(0)
    expect(isRunning(postgres)).to.equal(false)
    openDataFolder(dataDir).release()
  })

  it('brings a server back that dies under it', async () => {
    const dataDir = tempFolder('data')
    await untilHealthy(await start({ dataDir }))
    const before = serverPids(dataDir)
    for (const pid of before) process.kill(pid, 'SIGKILL')
    await eventually(() => serverPids(dataDir).every((pid) => !before.includes(pid) && isRunning(pid)), {
      timeoutMs: 60_000,
    })
  })

  it('is refused in one line that names the variable of a database, or of a broker, that is not there', async () => {
    const port = await freePort()
    const database = await start({
      dataDir: tempFolder(),
      env: { PENSTOCK_DATABASE_URL: `postgres://u:hush@127.0.0.1:${port}/db` },
    })
    const broker = await start({
      dataDir: tempFolder(),
      env: { PENSTOCK_NATS_URL: `nats://127.0.0.1:${port}`, PENSTOCK_PROCESSES: '1' },
    })
    expect([await database.exited(), await broker.exited()]).to.deep.equal([1, 1])
    const fatal = ({ events }: Service) =>
      events.filter(({ level }) => level === 'fatal').map(({ msg }) => msg)
    expect(fatal(database)).to.deep.equal([
      `PENSTOCK_DATABASE_URL: Postgres at 127.0.0.1:${port}/db cannot be used: connect ECONNREFUSED 127.0.0.1:${port}`,
    ])
    expect(fatal(broker)).to.have.length(1)
    expect(fatal(broker)[0]).to.match(/^PENSTOCK_NATS_URL: no NATS server at 127\.0\.0\.1:\d+: /)
    expect(database.output()).not.to.include('hush')
  })

  it('takes another number of shards without an alarm as long as no item was ever stored', async () => {
    const dataDir = tempFolder('data')
    for (const shards of ['2', '3', '2']) {
      const service = await start({ dataDir, env: { PENSTOCK_SHARDS: shards, PENSTOCK_PROCESSES: '1' } })
      const began = Date.now()
      await untilHealthy(service)
      await untilCounted(dataDir, Number(shards), began)
      service.child.kill('SIGTERM')
      expect(await service.exited()).to.equal(0)
      const grave = service.events.filter(({ level }) => level !== 'info' && level !== 'debug')
      expect(grave, shards).to.deep.equal([])
    }
  })

  it('is refused with an unknown variable or a bad value, which one line names', async () => {
    const unknown = await start({ dataDir: tempFolder(), env: { PENSTOCK_PRT: '1' } })
    const bad = await start({ dataDir: tempFolder(), env: { PENSTOCK_SHARDS: 'many' } })
    expect([await unknown.exited(), await bad.exited()]).to.deep.equal([1, 1])
    expect(unknown.output().trim()).to.match(/^PENSTOCK_PRT: [^\n]+$/)
    expect(bad.output().trim()).to.match(/^PENSTOCK_SHARDS: [^\n]+$/)
  })
})

/** Each shard has stored how far its journal is counted. That comes after all that it says of its claim. */
async function untilCounted(dataDir: string, shards: number, since: number): Promise<void> {
  const db = connect(addressIn(join(dataDir, 'postgres'))!, { max: 1 })
  try {
    await eventually(
      async () => {
        const rows = await db`SELECT FROM projections WHERE position > ${since * 1_000}`
        expect(rows).to.have.length(shards)
      },
      { timeoutMs: 60_000, everyMs: 50 },
    )
  } finally {
    await db.end()
  }
}

/** As the servers themselves wrote them. */
function serverPids(dataDir: string): number[] {
  return ['nats/nats.pid', 'postgres/data/postmaster.pid'].map((file) =>
    Number.parseInt(readFileSync(join(dataDir, file), 'utf8'), 10),
  )
}
