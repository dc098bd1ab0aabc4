import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { systemClock, systemRandomness } from '../../../internal/runtime/system-clock.ts'
import { WORKERS } from '../../../operator/controller/turns.ts'
import { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { EventRecorder } from '../../../operator/kubernetes/events.ts'
import { eventually } from '../../support/eventually.ts'
import { resource } from '../reconcile/fixtures.ts'

describe('Events that wait for the API server', () => {
  let server: Server
  let api: ApiServer
  let recorder: EventRecorder
  /** Paths of what was written, and the answers that the API server keeps until it is asked for them. */
  let written: string[]
  let kept: ServerResponse[]
  let answers: boolean

  beforeEach(async () => {
    written = []
    kept = []
    answers = false
    server = createServer((request, response) => {
      written.push(`${request.method} ${request.url!}`)
      if (answers) response.end('{}')
      else kept.push(response)
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

  function answer(): void {
    answers = true
    for (const response of kept.splice(0)) response.end('{}')
  }

  it('leave room for those of other namespaces', async () => {
    for (let index = 0; index < 10_000; index++) record('bad', index)
    record('good', 0)
    await eventually(() => kept.length > 0)
    answer()
    await recorder.close(30_000)
    expect(written.filter((path) => path.includes('/good/'))).to.have.length(1)
    expect(written.filter((path) => path.includes('/bad/'))).to.have.length(2_500)
    record('bad', 10_000)
    await recorder.close(30_000)
    expect(written).to.have.length(2_502)
  })

  it('are written at once, those of one resource one after the other', async () => {
    record('shop', 0)
    record('shop', 0)
    for (let index = 1; index < 40; index++) record('shop', index)
    await eventually(() => expect(written).to.have.length(WORKERS))
    expect(written.filter((path) => path.startsWith('PATCH'))).to.deep.equal([])
    answer()
    await recorder.close(30_000)
    expect(written.filter((path) => path.startsWith('PATCH'))).to.have.length(1)
    expect(written).to.have.length(41)
  })
})
