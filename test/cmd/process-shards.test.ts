import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { refuseTroublesAt } from '../../cmd/penstock/process-shards.ts'

describe('the shards of further processes, as /health asks for them', () => {
  const servers: Server[] = []

  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections()
  })

  /** An ops port whose table has these troubles, by shard. */
  async function opsPort(troubles: (string | null)[] | number): Promise<string> {
    const server = createServer((_request, response) => {
      if (typeof troubles === 'number') return response.writeHead(troubles).end('no shards run here')
      const shards = troubles.map((trouble, shard) => ({ shard, trouble }))
      return response.end(JSON.stringify({ shards }))
    })
    servers.push(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
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
