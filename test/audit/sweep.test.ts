/** Retention of the audit in the program that does it. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createAuditStore } from '../../internal/postgres/audit.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { Cluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/servers.ts'
import { auditRecord } from './record.ts'

const DAY_MS = 86_400_000

describe('an admin with an audit', function () {
  this.timeout(120_000)

  it('removes what is older than 90 days when it starts, or than as many as it is told', async () => {
    const url = await freshDatabase()
    const db = connect(url)
    const ages = [91, 89, 3, 1]
    const records = ages.map((days) => auditRecord({ createdAt: Date.now() - days * DAY_MS }))
    await createAuditStore(db).insert(records)
    const [, quarter, , day] = records.map(({ auditId }) => auditId)
    const left = async () =>
      (await db`SELECT audit_id FROM audit_records ORDER BY created_at`).map((row) => row.audit_id)
    const cluster = await Cluster.create({ PENSTOCK_DATABASE_URL: url })
    try {
      const plain = await cluster.start('admin')
      await eventually(async () => expect(await left()).to.have.length(3))
      await plain.stop()
      expect((await left())[0]).to.equal(quarter)
      const told = await cluster.start('admin', { PENSTOCK_AUDIT_DAYS: '2' })
      await eventually(async () => expect(await left()).to.deep.equal([day]))
      await told.stop()
      expect(told.service.output()).to.include('audit records removed')
    } finally {
      await cluster.stop()
      await db.end()
    }
  })
})
