/** That a running service has the limits of its variables (docs/reference/api.md, "Limits"); `test/http/limits` has what they do. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { createInstallation } from '../support/service.ts'
import { FRONTS } from '../support/shape.ts'
import { harness, NEVER_DUE } from './harness.ts'

/** Each process that takes requests counts by itself. */
const BURST = 2 * 20 * FRONTS

describe('the limits of a service', function () {
  this.timeout(120_000)
  const on = harness({
    async installation() {
      const env = {
        PENSTOCK_KEY_REQUESTS_PER_SECOND: '20',
        PENSTOCK_TESTS_PER_MINUTE: '1',
        PENSTOCK_MAX_CUSTOMERS: '1',
        PENSTOCK_MAX_PROJECTS: '1',
        PENSTOCK_MAX_BUFFERS: '1',
      }
      const installation = await createInstallation({ shared: true, env, customers: ['e2e', 'greedy'] })
      await installation.start()
      return installation
    },
  })

  it('are those of its variables', async () => {
    const ask = (path: string, body: object) => on.api.request('POST', path, body)
    const { bufferId, projectId } = await on.channel({ batch: NEVER_DUE })
    const another = { projectId, bufferId: 'another', name: 'b', groupKey: { mode: 'jsonpath', path: '$.g' } }
    const delivery = { url: on.sink.url('/another') }
    expect((await ask('/v1/admin/buffers', { ...another, delivery })).status).to.equal(409)
    expect((await ask('/v1/admin/projects', { projectId: 'another', name: 'p' })).status).to.equal(409)
    const customer = (customerId: string) => ask('/v1/admin/customers', { customerId, name: 'c' })
    expect([(await customer('c1')).status, (await customer('c2')).status]).to.deep.equal([201, 409])
    const tests = Array.from({ length: 5 * FRONTS + 1 }, () =>
      ask(`/v1/admin/buffers/${bufferId}/test`, { payload: {} }),
    )
    expect((await Promise.all(tests)).map(({ status }) => status)).to.include(429)
  })

  it('refuse a key that asks too often, a quarter of a second later at least', async () => {
    const greedy = on.installation.api('greedy')
    const asked = Array.from({ length: 2 * BURST }, async () => {
      const sentAt = performance.now()
      const { status } = await greedy.request('GET', '/v1/admin/credits')
      return { status, ms: performance.now() - sentAt }
    })
    const refused = (await Promise.all(asked)).filter(({ status }) => status === 429)
    expect(refused).to.have.length.above(0)
    for (const { ms } of refused) expect(ms).to.be.above(240)
  })
})
