/** Records of the audit (migration 041): one SQL operation a function. */
import type { AuditPlace, AuditStore } from '../audit/ports.ts'
import type { AuditRecord } from '../domain/audit.ts'
import type { Database } from './connection.ts'

interface AuditRow {
  customer_id: string
  created_at: number
  audit_id: string
  event: AuditRecord['event']
  actor: AuditRecord['actor']
  method: string | null
  route: string | null
  target: AuditRecord['target']
  origin: AuditRecord['from']
  status: number | null
  count: number
}

export function createAuditStore(db: Database): AuditStore {
  return {
    insert: (records) => insertRecords(db, records),
    list: (customerId, page) => listRecords(db, customerId, page),
    removeOlder: (before, limit) => removeOlder(db, before, limit),
  }
}

async function insertRecords(db: Database, records: readonly AuditRecord[]): Promise<void> {
  await db`
    INSERT INTO audit_records
      (customer_id, created_at, audit_id, event, actor, method, route, target, origin, status, count)
    SELECT * FROM jsonb_to_recordset(${db.json(records.map(rowOf) as never)}::jsonb) AS record (
      customer_id text, created_at bigint, audit_id uuid, event text, actor jsonb, method text, route text,
      target jsonb, origin jsonb, status integer, count integer)
    ON CONFLICT DO NOTHING`
}

async function listRecords(
  db: Database,
  customerId: string,
  { since, before, limit }: { since: number; before: AuditPlace; limit: number },
): Promise<AuditRecord[]> {
  const rows = await db<AuditRow[]>`
    SELECT * FROM audit_records
    WHERE customer_id = ${customerId} AND created_at >= ${since}
      AND (created_at, audit_id) < (${before.createdAt}::bigint, ${before.auditId}::uuid)
    ORDER BY customer_id DESC, created_at DESC, audit_id DESC LIMIT ${limit}`
  return rows.map(recordOf)
}

/** Those that another node removes at this moment are left to it. */
async function removeOlder(db: Database, before: number, limit: number): Promise<number> {
  const removed = await db`
    DELETE FROM audit_records WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM audit_records WHERE created_at < ${before}
      ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED))`
  return removed.count
}

function rowOf(record: AuditRecord): AuditRow {
  const { customerId, createdAt, auditId, from, event, actor, method, route, target, status, count } = record
  return {
    customer_id: customerId,
    created_at: createdAt,
    audit_id: auditId,
    event,
    actor,
    method,
    route,
    target,
    origin: from,
    status,
    count,
  }
}

function recordOf(row: AuditRow): AuditRecord {
  return {
    auditId: row.audit_id,
    customerId: row.customer_id,
    createdAt: row.created_at,
    event: row.event,
    actor: row.actor,
    method: row.method,
    route: row.route,
    target: row.target,
    from: row.origin,
    status: row.status,
    count: row.count,
  }
}
