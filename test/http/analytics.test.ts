/** The two endpoints of analytics (docs/reference/analytics.md): who sees what, and what is refused. */
import { Ajv } from 'ajv'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { AnalyticsSummary, AnalyticsTimeseries } from '../../internal/analytics/analytics.ts'
import { analyticsSummarySchema, analyticsTimeseriesSchema } from '../../internal/http/schemas/analytics.ts'
import type { Schema } from '../../internal/http/schemas/shape.ts'
import { adminHarnessOfSuite, refuses } from './admin-harness.ts'
import { type Admin, adminOf, bufferBody, call } from './caller.ts'

const SUMMARY = '/v1/analytics/summary'
const SERIES = '/v1/analytics/timeseries'
const BOTH = [SUMMARY, SERIES]

describe('analytics over HTTP', () => {
  const harness = adminHarnessOfSuite()

  before(async () => {
    const lab = bufferBody('samples', 'lab')
    expect((await harness.owner.post('/v1/admin/buffers', lab)).status).to.equal(201)
    await send('shop', 'orders', 3)
    await send('lab', 'samples', 2)
  })

  async function send(projectId: string, bufferId: string, count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const url = `${harness.service.url}/v1/ingest/${projectId}/${bufferId}`
      const { status } = await call(url, { method: 'POST', body: '{"customer":"c"}' })
      expect(status).to.equal(202)
    }
  }

  async function summary(as: Admin, query = 'customerId=acme'): Promise<AnalyticsSummary> {
    return held(await as.get(`${SUMMARY}?${query}`), analyticsSummarySchema) as AnalyticsSummary
  }

  async function series(as: Admin, query = 'customerId=acme'): Promise<AnalyticsTimeseries> {
    return held(await as.get(`${SERIES}?${query}`), analyticsTimeseriesSchema) as AnalyticsTimeseries
  }

  it('every role reads them, in the shape that is documented', async () => {
    for (const caller of [harness.owner, harness.member, harness.viewer]) {
      const { today, counts } = await summary(caller)
      expect(today.ingestCount).to.equal(5)
      expect(counts).to.deep.equal({ projects: 2, buffers: 2 })
      const { timeseries, totals } = await series(caller)
      expect(timeseries.map(({ ingestCount }) => ingestCount)).to.deep.equal([0, 0, 0, 0, 0, 0, 5])
      expect(totals.ingestCount).to.equal(5)
    }
  })

  it('a project-scoped key reads the figures of its projects alone', async () => {
    const { today, counts } = await summary(harness.scoped)
    expect(today.ingestCount).to.equal(2)
    expect(counts).to.deep.equal({ projects: 1, buffers: 1 })
    expect((await series(harness.scoped)).totals.ingestCount).to.equal(2)
    expect((await series(harness.scoped, 'customerId=acme&projectId=shop')).totals.ingestCount).to.equal(0)
    expect((await series(harness.scoped, 'customerId=acme&bufferId=orders')).totals.ingestCount).to.equal(0)
  })

  it('filters narrow the series; one that names nothing of the caller’s yields zeros, whoever has it', async () => {
    const of = async (as: Admin, query: string) => (await series(as, query)).totals.ingestCount
    expect(await of(harness.owner, 'customerId=acme&projectId=shop')).to.equal(3)
    expect(await of(harness.owner, 'customerId=acme&bufferId=samples')).to.equal(2)
    expect(await of(harness.owner, 'customerId=acme&projectId=shop&bufferId=samples')).to.equal(0)
    expect(await of(harness.owner, 'customerId=acme&projectId=nowhere')).to.equal(0)
    expect(await series(harness.rival, 'customerId=rival&bufferId=orders')).to.deep.equal(
      await series(harness.rival, 'customerId=rival&bufferId=nothing'),
    )
  })

  it('the series has as many days as asked, 7 by default', async () => {
    for (const [query, days] of [
      ['', 7],
      ['&days=1', 1],
      ['&days=90', 90],
    ] as const) {
      expect((await series(harness.owner, `customerId=acme${query}`)).timeseries).to.have.length(days)
    }
  })

  it('400 names what is missing or wrong', async () => {
    for (const path of BOTH) {
      await refuses(harness.owner.get(path), 400, /^customerId is required$/)
      await refuses(harness.owner.get(`${path}?customerId=`), 400, /^customerId is required$/)
      await refuses(harness.owner.get(`${path}?customerId=acme&customerId=acme`), 400, /customerId .*once/)
    }
    const wrong = [
      ...[
        'days=',
        'days=0',
        'days=91',
        'days=-1',
        'days=1.5',
        'days=x',
        'days=1e1',
        'days=NaN',
        'days=7&days=7',
      ],
      ...[
        'projectId=..',
        'projectId=a%20b',
        'bufferId=a%2fb',
        'bufferId=%00',
        `projectId=${'p'.repeat(129)}`,
      ],
    ]
    for (const query of wrong) {
      const field = new RegExp(query.split('=')[0]!)
      await refuses(harness.owner.get(`${SERIES}?customerId=acme&${query}`), 400, field)
    }
  })

  it('401 without a credential, 403 for another customer', async () => {
    for (const path of BOTH) {
      await refuses(call(`${harness.service.url}${path}?customerId=acme`), 401, /^Missing credential$/)
      const key = adminOf(harness.service.url, `svk_${'0'.repeat(48)}`)
      await refuses(key.get(`${path}?customerId=acme`), 401, /^Invalid or revoked API key$/)
      const foreign = harness.rival.get(`${path}?customerId=acme`)
      await refuses(foreign, 403, /^customerId differs from the authenticated customer$/)
    }
  })
})

/** The body of a 200 that is exactly of its schema. */
function held({ status, json, text }: Awaited<ReturnType<Admin['get']>>, schema: Schema): unknown {
  expect(status, text).to.equal(200)
  const ajv = new Ajv({ strict: true })
  expect(ajv.validate(schema, json), ajv.errorsText()).to.equal(true)
  return json
}
