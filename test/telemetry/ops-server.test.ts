import { once } from 'node:events'
import { request } from 'node:http'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'

import { counter } from '../../internal/telemetry/counter.ts'
import { type Metrics, startMetrics } from '../../internal/telemetry/metrics.ts'
import { type OpsServer, startOps } from '../../internal/telemetry/ops-server.ts'

describe('the ops port', () => {
  const open: (OpsServer | Metrics)[] = []

  afterEach(async () => {
    for (const each of open.splice(0)) await ('close' in each ? each.close() : each.shutdown())
  })

  async function serve(
    ready: () => boolean | Promise<boolean>,
    shards?: () => Promise<unknown> | undefined,
  ): Promise<(path: string) => Promise<Response>> {
    const metrics = startMetrics('actor', {})
    counter(metrics.meter, 'penstock_things', 'Things', 'kind').add(3, 'good')
    const options = { host: '127.0.0.1', port: 0, ready, metrics: metrics.handle }
    const ops = await startOps({ ...options, ...(shards && { shards }) })
    open.push(ops, metrics)
    return (path) => fetch(`http://127.0.0.1:${ops.port}${path}`)
  }

  it('serves the metrics in Prometheus’ text', async () => {
    const get = await serve(() => true)
    const text = await (await get('/metrics')).text()
    expect(text).to.match(/^penstock_things_total\{kind="good"\} 3$/m)
    expect(text).to.match(/^target_info\{[^}]*service_name="penstock-actor"/m)
  })

  it('is live as soon as it answers, and ready when its owner says so', async () => {
    let answer: () => boolean | Promise<boolean> = () => false
    const get = await serve(() => answer())
    expect((await get('/live')).status).to.equal(200)
    expect((await get('/ready')).status).to.equal(503)
    answer = () => true
    expect((await get('/ready')).status).to.equal(200)
    answer = () => Promise.reject(new Error('away'))
    expect((await get('/ready')).status).to.equal(503)
    expect((await get('/')).status).to.equal(404)
  })

  it('tells under a foreign name no more than whether it is live and ready', async () => {
    const metrics = startMetrics('actor', {})
    const shards = async () => ({ boot: 'b', shards: [] })
    const ops = await startOps({
      host: '127.0.0.1',
      port: 0,
      ready: () => true,
      metrics: metrics.handle,
      shards,
    })
    open.push(ops, metrics)
    const statuses = async (host: string) => {
      const statuses = []
      for (const path of ['/live', '/ready', '/metrics', '/shards']) {
        const asked = request({ port: ops.port, path, headers: { host } }).end()
        const [answer] = await once(asked, 'response')
        statuses.push(answer.resume().statusCode)
      }
      return statuses
    }
    expect(await statuses('rebound.example')).to.deep.equal([200, 200, 400, 400])
    expect(await statuses('penstock-actor.prod.svc')).to.deep.equal([200, 200, 200, 200])
  })

  it('shows the shards as JSON where some run, and says so while it cannot', async () => {
    expect((await (await serve(() => true))('/shards')).status).to.equal(404)
    let answer: () => Promise<unknown> | undefined = () => undefined
    const get = await serve(
      () => true,
      () => answer(),
    )
    expect((await get('/shards')).status).to.equal(404)
    answer = async () => ({ boot: 'b', shards: [] })
    const shown = await get('/shards')
    expect(shown.headers.get('content-type')).to.equal('application/json; charset=utf-8')
    expect(await shown.json()).to.deep.equal({ boot: 'b', shards: [] })
    answer = () => Promise.reject(new Error('away'))
    expect((await get('/shards')).status).to.equal(503)
  })
})
