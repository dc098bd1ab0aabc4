import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import postgres from 'postgres'

import { schemaRows } from '../../cmd/docs/schema-rows.ts'
import { deliveryBatchSchema } from '../../internal/http/schemas/dead-letters.ts'
import { responseSchemas } from '../../internal/http/schemas/registry.ts'
import { freshDatabase } from '../support/servers.ts'
import { rowsOf } from './pages.ts'
import { type PastedPage, pastedPage, received } from './pasted-page.ts'

const PAGE = 'docs/guide/receivers.md'
const TEXT = readFileSync(join(import.meta.dirname, '..', '..', PAGE), 'utf8')

describe('the statements of the guide for receivers', function () {
  this.timeout(120_000)

  it('insert a name once, and wait for whoever inserts it', async () => {
    const sql = postgres(await freshDatabase(), { max: 2, onnotice: () => {} })
    const [table = '', insert = '', ...others] = [...TEXT.matchAll(/^```sql\n(.*?)^```$/gms)].map(
      ([, statement]) => statement,
    )
    expect(others).to.deep.equal([])
    try {
      await sql.unsafe(table)
      const both = [sql, sql].map((each) =>
        each.begin(async (transaction) => (await transaction.unsafe(insert)).count),
      )
      expect((await Promise.all(both)).toSorted()).to.deep.equal([0, 1])
    } finally {
      await sql.end()
    }
  })
})

describe('the commands of the guide for receivers', function () {
  this.timeout(120_000)
  const page = pastedPage(PAGE)

  it('run a receiver that takes what is signed', async () => {
    const output = await page.paste('Run a receiver')
    expect(output).to.include("{ author: 'ada', text: 'two' }")
  })

  it('verify a signature that was made by hand', async () => {
    expect(await page.paste('Sign by hand')).to.equal('401\n204\n')
  })

  it('take an item once, however often it comes', async () => {
    expect(await page.paste('Skip what was already processed')).to.equal('204\n1\n')
  })

  it('set a bad item aside and process its neighbour', async () => {
    const [status, ...lines] = (await page.paste('Handle a bad item')).trimEnd().split('\n')
    expect(status).to.equal('204')
    expect(lines).to.deep.equal(['set aside m2: it has no text', "{ text: 'four' }"])
  })

  it('set attempts and waits', async () => {
    await page.paste('Know when it retries')
    const { throughput } = await page.installation.api().readBuffer('notes')
    expect(throughput).to.deep.include({
      maxAttempts: 5,
      backoff: { initialMs: 500, multiplier: 4, maxMs: 60_000 },
    })
  })

  it('send a test', async () => {
    expect(await page.paste('Send a test')).to.include('"success":true,"statusCode":204')
  })

  it('rotate the secret while the receiver accepts both', async () => {
    expect(await page.paste('Rotate the signing secret')).to.include('"success":true,"statusCode":204')
    const { delivery } = await page.installation.api().readBuffer('notes')
    expect(delivery.signing?.secret).to.equal('n3xt')
  })

  it('walk from a key to a retry: what failed is delivered once its destination is up', async () => {
    const output = await page.paste('From a key to a retry')
    expect(output).to.include('"success":false')
    const [failed = '', delivered = ''] = output.split('still down')
    expect(failed).to.include('"code":"delivery_failed"')
    expect(delivered).to.include('"status":"delivered"')
    const [request, ...others] = received(delivered)
    expect(others).to.deep.equal([])
    expect(request?.body.items.map(({ payload }) => payload)).to.deep.equal([
      { customer: 'ada', order: 1 },
      { customer: 'ada', order: 2 },
    ])
    expect(request?.headers['x-idempotency-key']).to.match(/^grp:.+:v\d+$/)
    expect(output.trimEnd()).to.match(/\[\]$/)
    // The key of the walk is gone, nothing else is.
    const keys = await page.installation
      .api()
      .expect<{ name: string; revokedAt: string | null }[]>(200, 'GET', '/v1/admin/api-keys')
    expect(keys.filter(({ revokedAt }) => revokedAt !== null).map(({ name }) => name)).to.deep.equal(['walk'])
    // The page's delivery has the members of a real one, in their order.
    expect(shapeOf(exampleOf(PAGE))).to.deep.equal(shapeOf(request?.body))
    expect(await headersOf(page)).to.have.members(rowsOf(TEXT, 'header', 'value').map(([name]) => name))
  })

  it('are about a body whose members the page explains, each once', () => {
    const explained = rowsOf(TEXT, 'member', 'meaning').flatMap(([names = '']) => names.split(', '))
    const members = schemaRows(deliveryBatchSchema).map(({ path }) => path)
    expect(explained).to.have.members(members.filter((path) => !['svc', 'window'].includes(path)))
  })

  it('explain fields that a dead letter has', () => {
    const told = rowsOf(TEXT, 'field', 'meaning').flatMap(([names = '']) => names.split(', '))
    expect(schemaRows(responseSchemas.DlqItem).map(({ path }) => path)).to.include.members(told)
  })

  it('are all run here', () => {
    expect(page.pasted).to.deep.equal([...page.sections.keys()])
  })
})

/** Headers of a real delivery that is signed; those of `delivery.headers` under the name of the field. */
async function headersOf(page: PastedPage): Promise<string[]> {
  const { installation } = page
  const url = `${installation.service.url}/local/receiver/headers`
  const { projectId } = await installation.api().readBuffer('notes')
  const delivery = { url, signing: { secret: 's3cret' }, headers: { 'x-own': 'mine' } }
  await installation.api().createBuffer(projectId, 'headers', { delivery })
  await installation.api().expect(200, 'POST', '/v1/admin/buffers/headers/test', { payload: {} })
  const [request] = (await (await fetch(url)).json()) as { headers: Record<string, string> }[]
  return Object.keys(request!.headers).map((name) => (name === 'x-own' ? 'delivery.headers' : name))
}

/** The one body in JSON that the page shows. */
function exampleOf(page: string): object {
  const text = readFileSync(join(import.meta.dirname, '..', '..', page), 'utf8')
  return JSON.parse(/^```json\n(.*?)^```$/ms.exec(text)![1]!)
}

/** Paths of all members, in their order, and the kinds of their values; of payloads nothing more. */
function shapeOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null || path.endsWith('.payload'))
    return [`${path} ${typeof value}`]
  return Object.entries(value).flatMap(([name, member]) => shapeOf(member, `${path}.${name}`))
}
