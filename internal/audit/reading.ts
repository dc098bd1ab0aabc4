/** The audit as its customer reads it (docs/reference/api.md, "Audit"). Refusals are thrown as ServiceError. */
import type { AuditRecord } from '../domain/audit.ts'
import { invalid, ServiceError } from '../domain/errors.ts'
import type { Principal } from '../domain/principal.ts'
import type { AuditPlace, AuditStore } from './ports.ts'

export interface AuditQuery {
  /** Unix ms, inclusive. Absent: all that is kept. */
  readonly since?: number
  /** Unix ms, exclusive. Absent: up to now. */
  readonly until?: number
  /** `nextCursor` of the page before. */
  readonly cursor?: string
  /** 1 to 100. */
  readonly limit: number
}

export interface AuditPage {
  /** Newest first. */
  readonly records: AuditRecord[]
  /** null: no older ones. */
  readonly nextCursor: string | null
}

export interface AuditReading {
  /** 400 for a cursor that no page has; 403 for a key that is limited to projects: records name all of them. */
  list(principal: Principal, query: AuditQuery): Promise<AuditPage>
}

/** Of every UUID the least. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'
const CURSOR = /^(\d{1,15})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

export function createAuditReading({ store }: { store: Pick<AuditStore, 'list'> }): AuditReading {
  return {
    async list({ customerId, projectIds }, { since = 0, until = Number.MAX_SAFE_INTEGER, cursor, limit }) {
      if (projectIds !== undefined) {
        throw new ServiceError('projectForeign', { error: 'A project-scoped key cannot read the audit' })
      }
      const end: AuditPlace = { createdAt: until, auditId: FIRST_ID }
      const place = cursor === undefined ? end : placeOf(cursor)
      const before = place.createdAt < until ? place : end
      // One more than asked for tells whether there is another page.
      const found = await store.list(customerId, { since, before, limit: limit + 1 })
      const records = found.slice(0, limit)
      const last = records.at(-1)
      return { records, nextCursor: found.length > limit && last ? cursorOf(last) : null }
    },
  }
}

function cursorOf({ createdAt, auditId }: AuditPlace): string {
  return `${createdAt}_${auditId}`
}

function placeOf(cursor: string): AuditPlace {
  const [, createdAt, auditId] = CURSOR.exec(cursor) ?? []
  if (createdAt === undefined || auditId === undefined) {
    throw invalid('cursor must be the nextCursor of a page')
  }
  return { createdAt: Number(createdAt), auditId }
}
