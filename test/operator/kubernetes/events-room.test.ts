import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { systemClock, systemRandomness } from '../../../internal/runtime/system-clock.ts'
import { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { EventRecorder } from '../../../operator/kubernetes/events.ts'
import { eventually } from '../../support/eventually.ts'
import { resource } from '../reconcile/fixtures.ts'

describe('Events of a namespace that has many', () => {
  let server: Server
  let api: ApiServer
  let recorder: EventRecorder
  /** Paths of what was written, and the first answer, which the API server keeps for a while. */
  let written: string[]
  let first: ServerResponse | undefined

  beforeEach(async () => {
    written = []
    first = undefined
    server = createServer((request, response) => {
      written.push(request.url!)
      if (first !== undefined) return response.end('{}')
      first = response
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const connection = { server: `http://127.0.0.1:${port}`, headers: {}, options: { type: 'none' as const } }
    api = new ApiServer({ namespace: undefined, connection: async () => connection })
    recorder = new EventRecorder({
      api,
      instance: 'test',
      clock: systemClock(),
      randomness: systemRandomness(),
      log: { warn: () => {} },
    })
  })

  afterEach(() => {
    api.close()
    server.closeAllConnections()
    server.close()
  })

  const record = (namespace: string, index: number) =>
    recorder.record(
      resource({ metadata: { namespace, uid: `${namespace}-${index}` } }),
      'Normal',
      'Created',
      `${index}`,
    )

  it('leave room for those of others while the API server is slow', async () => {
    for (let index = 0; index < 1_000; index++) record('bad', index)
    record('good', 0)
    await eventually(() => first !== undefined)
    first!.end('{}')
    await recorder.close(30_000)
    expect(written.filter((path) => path.includes('/good/'))).to.have.length(1)
    expect(written.filter((path) => path.includes('/bad/'))).to.have.length(250)
    record('bad', 1_000)
    await recorder.close(30_000)
    expect(written).to.have.length(252)
  })
})
