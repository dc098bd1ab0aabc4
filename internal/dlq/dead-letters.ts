/**
 * The dead letter queue as its users see it (docs/reference/api.md, "Dead letters"). Refusals are thrown as
 * ServiceError. An item of another customer is 403; one of a project that the key does not reach is 404.
 */

import { invalid, ServiceError } from '../domain/errors.ts'
import { isIdentifier } from '../domain/identifiers.ts'
import type { DlqItem } from '../domain/model.ts'
import { inScope, type Principal, scopeOf } from '../domain/principal.ts'
import type { DeadLetterPlace, DeadLetterStore } from './ports.ts'

export interface DeadLetterQuery {
  bufferId?: string
  /** 1 to 500. */
  limit: number
  /** The last item of the page before: `createdAt`, `_` and `dlqId`. */
  cursor?: string
}

export interface DeadLetterQueue {
  /**
   * Newest first. It ends before `limit` when it holds about 4 MB; only an empty one is the last. 404 when `bufferId`
   * names neither a buffer of the principal nor any item of one, 400 for a cursor that names no place.
   */
  list(principal: Principal, query: DeadLetterQuery): Promise<DlqItem[]>
  read(principal: Principal, dlqId: string): Promise<DlqItem>
  /** The exact body that failed, JSON. 409 `payload_unavailable` when it is not stored. */
  batch(principal: Principal, dlqId: string): Promise<Uint8Array>
  remove(principal: Principal, dlqId: string): Promise<void>
}

export function createDeadLetterQueue({ store }: { store: DeadLetterStore }): DeadLetterQueue {
  const read = (principal: Principal, dlqId: string) => readItem(store, principal, dlqId)
  return {
    read,
    list: (principal, query) => list(store, principal, query),
    async batch(principal, dlqId) {
      const item = await read(principal, dlqId)
      return storedBody(store, item.dlqId)
    },
    async remove(principal, dlqId) {
      const item = await read(principal, dlqId)
      if (!(await store.remove(item.dlqId))) throw new ServiceError('deadLetterNotFound')
    },
  }
}

/** 404 unknown, 403 of another customer. What is no identifier names nothing, and is not sent to Postgres. */
export async function readItem(
  store: DeadLetterStore,
  principal: Principal,
  dlqId: string,
): Promise<DlqItem> {
  return owned(principal, isIdentifier(dlqId) ? await store.find(dlqId) : undefined)
}

/** 404 when it was removed since it was read, 409 when its body is not stored. */
export async function storedBody(store: DeadLetterStore, dlqId: string): Promise<Uint8Array> {
  const body = await store.body(dlqId)
  if (body === undefined) throw new ServiceError('deadLetterNotFound')
  if (body === null) throw new ServiceError('payloadUnavailable')
  return body
}

const CURSOR = /^(\d{1,15})_(.+)$/

async function list(
  store: DeadLetterStore,
  principal: Principal,
  { bufferId, limit, cursor }: DeadLetterQuery,
): Promise<DlqItem[]> {
  const scope = scopeOf(principal)
  const after = cursor === undefined ? undefined : placeOf(cursor)
  if (bufferId !== undefined && !isIdentifier(bufferId)) throw new ServiceError('bufferNotFound')
  const items = await store.list(scope, { bufferId, limit, after })
  if (items.length > 0 || bufferId === undefined || after !== undefined) return items
  if (!(await store.hasBuffer(scope, bufferId))) throw new ServiceError('bufferNotFound')
  return items
}

function placeOf(cursor: string): DeadLetterPlace {
  const [, createdAt, dlqId] = CURSOR.exec(cursor) ?? []
  if (createdAt === undefined || !isIdentifier(dlqId)) {
    throw invalid('cursor must be the createdAt of a dead letter, "_" and its dlqId')
  }
  return { createdAt: Number(createdAt), dlqId }
}

function owned(principal: Principal, item: DlqItem | undefined): DlqItem {
  if (item === undefined) throw new ServiceError('deadLetterNotFound')
  if (item.customerId !== principal.customerId) throw new ServiceError('deadLetterForeign')
  if (!inScope(scopeOf(principal), item.customerId, item.projectId)) {
    throw new ServiceError('deadLetterNotFound')
  }
  return item
}
