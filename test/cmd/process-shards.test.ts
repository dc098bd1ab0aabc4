import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { refuseTroublesAt, tableWith } from '../../cmd/penstock/process-shards.ts'
import type { ShardRow, ShardTable } from '../../internal/shard/status/shard-table.ts'

const servers: Server[] = []

async function listenOn(server: Server): Promise<string> {
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function closeAll(): void {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
}

describe('the shards of further processes, as /health asks for them', () => {
  afterEach(closeAll)

  /** An ops port whose table has these troubles, by shard. */
  async function opsPort(troubles: (string | null)[] | number): Promise<string> {
    const server = createServer((_request, response) => {
      if (typeof troubles === 'number') return response.writeHead(troubles).end('no shards run here')
      const shards = troubles.map((trouble, shard) => ({ shard, trouble }))
      return response.end(JSON.stringify({ shards }))
    })
    return listenOn(server)
  }

  const reasonOf = (opsUrls: string[]) =>
    refuseTroublesAt(opsUrls).then(
      () => null,
      (error: Error) => error.message,
    )

  it('are well when every process answers without a trouble, and where there is no process', async () => {
    expect(await reasonOf([])).to.equal(null)
    expect(await reasonOf([await opsPort([null, null]), await opsPort([null])])).to.equal(null)
  })

  it('are not when a shard of any process does not run', async () => {
    const healthy = await opsPort([null, null])
    expect(await reasonOf([healthy, await opsPort([null, 'poisoned'])])).to.equal('shard 1: poisoned')
  })

  it('are not when a process does not tell', async () => {
    expect(await reasonOf([await opsPort(404)])).to.match(/: 404$/)
    const gone = await opsPort([null])
    for (const server of servers.splice(0)) {
      server.close().closeAllConnections()
      await once(server, 'close')
    }
    expect(await reasonOf([gone])).to.be.a('string')
  })
})

describe('the shards of further processes, as GET /shards shows them', () => {
  afterEach(closeAll)

  const elsewhere = (shard: number) => ({ shard, here: false, state: 'elsewhere' }) as ShardRow
  const running = (shard: number, epoch: number) =>
    ({ shard, here: true, state: 'running', epoch }) as ShardRow
  const table = (boot: string, shards: ShardRow[], held = true): ShardTable => ({ boot, held, at: 1, shards })
  const own = table('front', [elsewhere(0), elsewhere(1)])
  const tells = (told: ShardTable) =>
    listenOn(createServer((_, response) => response.end(JSON.stringify(told))))

  it('are told by whoever runs them, in their order', async () => {
    const [one, other] = [
      await tells(table('one', [elsewhere(0), running(1, 7)])),
      await tells(table('other', [running(0, 5), elsewhere(1)])),
    ]
    const whole = table('front', [running(0, 5), running(1, 7)])
    expect(await tableWith(own, [one, other])).to.deep.equal(whole)
  })

  it('are elsewhere where nobody runs them, and shown twice while two have them', async () => {
    const [one, other] = [
      await tells(table('one', [running(0, 5), elsewhere(1)])),
      await tells(table('other', [running(0, 6), elsewhere(1)])),
    ]
    const { shards } = await tableWith(own, [one, other])
    expect(shards).to.deep.equal([running(0, 5), running(0, 6), elsewhere(1)])
    expect(await tableWith(own, []), 'one process alone').to.deep.equal(own)
  })

  it('are not held where one has no lease', async () => {
    const one = await tells(table('one', [running(0, 5), elsewhere(1)], false))
    expect(await tableWith(own, [one])).to.include({ held: false })
  })

  it('are not told when one process does not answer, which is named', async () => {
    const one = await tells(table('one', [running(0, 5), elsewhere(1)]))
    const silent = await listenOn(
      createServer((_, response) => response.writeHead(404).end('no shards run here')),
    )
    const refused = await tableWith(own, [one, silent]).then(
      () => null,
      (error: Error) => error.message,
    )
    expect(refused).to.equal(`${silent}: 404`)
  })
})
