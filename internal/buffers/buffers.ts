/** Buffers (docs/reference/api.md, "Buffers"). Refusals are thrown as ServiceError. */

import {
  applyBufferPatch,
  type CheckDestination,
  parseBufferClone,
  parseBufferCreate,
} from '../domain/buffer.ts'
import { required, ServiceError } from '../domain/errors.ts'
import { cloneIdentifier } from '../domain/identifiers.ts'
import type { Buffer, BufferRecord } from '../domain/model.ts'
import { inScope, type Principal, scopeOf } from '../domain/principal.ts'
import { shortSecrets } from '../domain/short-secrets.ts'
import type { BufferRecords, BufferStore, OverCap } from './ports.ts'

/** Secrets are in every answer as stored; the caller redacts them for those who may not see them. */
export interface Buffers {
  /** 400 names the field or the project is not found, 403 foreign customerId, 409 exists or too many. */
  create(principal: Principal, body: unknown): Promise<Buffer>
  /** Newest first, only what the principal reaches; `projectId` filters. */
  list(principal: Principal, filter?: { projectId?: string }): Promise<Buffer[]>
  /** 404 also for a buffer of somebody else, so that its existence does not show. */
  read(principal: Principal, bufferId: string): Promise<Buffer>
  /** As `read`, with the internal identity. */
  record(principal: Principal, bufferId: string): Promise<BufferRecord>
  /** JSON merge patch (RFC 7396). Enabling a disabled buffer sets `consecutiveDlqCount` to 0. */
  update(principal: Principal, bufferId: string, patch: unknown): Promise<Buffer>
  /**
   * A new buffer with the whole configuration of this one, `enabled` and secrets too, and nothing of what
   * happened to it: `<bufferId>-copy`, `-copy-2`, … Body: optional `{name}`. 400 when no such id is free, 409 for too many buffers.
   */
  clone(principal: Principal, bufferId: string, body: unknown): Promise<Buffer>
  /** Ingest answers 404 at once and the id is free for its customer; what is buffered is delivered, or discarded when it was disabled. */
  remove(principal: Principal, bufferId: string): Promise<void>
}

export interface BuffersOptions {
  buffers: BufferStore
  /** The node's cache: a change is seen on this node before it is answered. */
  records: BufferRecords
  checkDestination: CheckDestination
  /** A new internal identity: a lower-case UUID. */
  newUid: () => string
  /** Told of secrets that were set and are short. `fields`: their paths. */
  onShortSecrets: (found: { customerId: string; bufferId: string; fields: string[] }) => void
}

/** Ids that a clone tries. */
const MOST_CLONES = 10_000

export function createBuffers(options: BuffersOptions): Buffers {
  const { buffers, records, checkDestination, newUid, onShortSecrets } = options

  async function record(principal: Principal, bufferId: string): Promise<BufferRecord> {
    return found(await buffers.find(scopeOf(principal), bufferId))
  }

  function tellShort({ buffer }: BufferRecord, fields: string[]): void {
    const { customerId, bufferId } = buffer
    if (fields.length > 0) onShortSecrets({ customerId, bufferId, fields })
  }

  return {
    record,
    async create(principal, body) {
      const { customerId = principal.customerId, ...wanted } = required(
        parseBufferCreate(body, checkDestination),
      )
      if (customerId !== principal.customerId) throw new ServiceError('customerForeign')
      if (!inScope(scopeOf(principal), customerId, wanted.projectId)) throw new ServiceError('projectUnknown')
      const inserted = created(await buffers.insert({ ...wanted, customerId, uid: newUid() }))
      records.accept(inserted)
      tellShort(inserted, shortSecrets(inserted.buffer))
      return inserted.buffer
    },
    list: (principal, filter) => buffers.list(scopeOf(principal), filter?.projectId),
    async read(principal, bufferId) {
      return (await record(principal, bufferId)).buffer
    },
    async update(principal, bufferId, patch) {
      let short: string[] = []
      const change = (stored: Buffer) => {
        const { config } = required(applyBufferPatch(stored, patch, checkDestination))
        short = shortSecrets(config, stored)
        return config
      }
      const updated = found(await buffers.update(scopeOf(principal), bufferId, change))
      records.accept(updated)
      tellShort(updated, short)
      return updated.buffer
    },
    async clone(principal, bufferId, body) {
      const make = (stored: Buffer) => ({
        uid: newUid(),
        config: required(parseBufferClone(stored, body)),
        ids: Array.from({ length: MOST_CLONES }, (_, n) => cloneIdentifier(bufferId, n + 1)),
      })
      const copied = await buffers.copy(scopeOf(principal), bufferId, make)
      if (copied === 'no-id') throw new ServiceError('cloneFailed')
      if (copied === 'unreadable') throw new ServiceError('secretUnreadable')
      const record = withinCaps(found(copied))
      records.accept(record)
      return record.buffer
    },
    async remove(principal, bufferId) {
      records.accept(found(await buffers.softDelete(scopeOf(principal), bufferId)))
    },
  }
}

function created(outcome: BufferRecord | 'no-project' | 'exists' | OverCap): BufferRecord {
  if (outcome === 'no-project') throw new ServiceError('projectUnknown')
  if (outcome === 'exists') throw new ServiceError('bufferExists')
  return withinCaps(outcome)
}

function withinCaps(outcome: BufferRecord | OverCap): BufferRecord {
  if (outcome === 'limit') throw new ServiceError('bufferLimit')
  if (outcome === 'ids-spent') throw new ServiceError('idLimit')
  return outcome
}

function found<T>(record: T | undefined): T {
  if (record === undefined) throw new ServiceError('bufferNotFound')
  return record
}
