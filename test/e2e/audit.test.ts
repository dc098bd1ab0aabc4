/** The audit at the whole service (docs/operations/audit.md). */
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import type { AuditPage } from '../../internal/audit/reading.ts'
import type { AuditRecord } from '../../internal/domain/audit.ts'
import { connect } from '../../internal/postgres/connection.ts'
import type { Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/servers.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { shell, shellCommands } from '../support/shell-commands.ts'

const CHANGES = 120

describe('the audit of the service', function () {
  this.timeout(120_000)
  let installation: Installation
  let api: Api
  let databaseUrl: string

  before(async () => {
    databaseUrl = await freshDatabase()
    installation = await createInstallation({
      shared: true,
      env: { PENSTOCK_DATABASE_URL: databaseUrl },
    })
    await installation.start()
    api = installation.api()
  })
  after(() => installation.stop())

  /** Nobody writes records until it is called. */
  async function lockTable(): Promise<() => Promise<void>> {
    const db = connect(databaseUrl, { max: 1, idleInTransactionTimeoutMs: 0 })
    await db`BEGIN`
    await db`LOCK TABLE audit_records IN EXCLUSIVE MODE`
    return async () => {
      await db`COMMIT`
      await db.end()
    }
  }

  async function records(query = ''): Promise<AuditRecord[]> {
    const page = await api.expect<AuditPage>(200, 'GET', `/v1/admin/audit?limit=100${query}`)
    return page.records
  }

  it('has a revoked key that goes on sending webhooks, and the metric has it, too', async () => {
    const projectId = await api.createProject()
    await api.createBuffer(projectId, 'watched', { delivery: { url: 'http://127.0.0.1:9/' } })
    const { keyId, secret } = await api.expect<{ keyId: string; secret: string }>(
      201,
      'POST',
      '/v1/admin/api-keys',
      { name: 'sender', role: 'member' },
    )
    await api.expect(204, 'DELETE', `/v1/admin/api-keys/${keyId}`)
    await eventually(async () => {
      const { status } = await api.ingest(projectId, 'watched', { group: 'g' }, { 'x-api-key': secret })
      expect(status).to.equal(401)
    })
    const [failure] = await eventually(async () => {
      const found = (await records()).filter(({ event }) => event === 'authentication_failed')
      expect(found).not.to.deep.equal([])
      return found
    })
    expect(failure).to.deep.include({
      actor: { type: 'key', keyId },
      route: '/v1/ingest/{projectId}/{bufferId}',
      target: { projectId, bufferId: 'watched' },
      from: { address: '127.0.0.1' },
    })
    const labels = { place: 'ingest', credential: 'key' }
    expect(await installation.metric('penstock_authentication_failures_total', labels)).to.be.above(0)
    expect(await installation.metric('penstock_audit_records_total')).to.be.above(0)
  })

  it('has all that was done until the service was stopped, although Postgres lets it wait', async () => {
    const since = Date.now()
    const unlock = await lockTable()
    for (let n = 0; n < CHANGES; n++) await api.createProject(`last-${n}`)
    const stopped = installation.stop()
    // Long enough for a process that does not wait to be gone, and within the 3 s that it does.
    await delay(1_500)
    await unlock()
    expect(await stopped).to.equal(0)
    await installation.start()
    const first = await api.expect<AuditPage>(200, 'GET', `/v1/admin/audit?since=${since}&limit=100`)
    const rest = await records(`&since=${since}&cursor=${first.nextCursor}`)
    const named = [...first.records, ...rest].map(({ target }) => target.projectId)
    expect(named).to.have.members(Array.from({ length: CHANGES }, (_, n) => `last-${n}`))
  })

  it('is printed by the commands of its page, over all its pages', async () => {
    const commands = shellCommands('docs/operations/audit.md', '## Read it')
    const { code, output } = await shell(commands, {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      P: installation.service.url,
      KEY: api.key!,
    })
    expect(code, output).to.equal(0)
    const lines = output.trimEnd().split('\n')
    expect(lines.filter((line) => line.includes('"projectId":"last-'))).to.have.length(CHANGES)
    expect(lines[0]).to.match(
      /^\d{4}-\d\d-\d\dT[\d:.]+Z change [0-9a-f-]{36} POST \/v1\/admin\/projects 201 127\.0\.0\.1 \{"projectId":"last-119"\} 1$/,
    )
    expect(output).to.include(' authentication_failed ')
  })
})
