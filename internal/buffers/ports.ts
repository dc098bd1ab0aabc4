/**
 * What the use cases of buffers need: rows of Postgres, the node's own cache (docs/architecture/protocol.md, "Cached
 * configuration"), deliveries.
 */

import type { Buffer, BufferConfig, BufferRecord, DeliveryConfig } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'

export interface NewBuffer {
  /** Lower-case UUID, the internal identity. */
  uid: string
  bufferId: string
  customerId: string
  projectId: string
  config: BufferConfig
}

/** A buffer to be stored beside the one it copies, under the first of `ids` that is free. */
export interface BufferCopy {
  uid: string
  config: BufferConfig
  ids: readonly string[]
}

export type OverCap = 'limit' | 'ids-spent'

/** Rows of buffers; deleted ones do not exist here. Every call rejects while the database is away. */
export interface BufferStore {
  /**
   * 'no-project': no such project of this customer. 'exists': the id is taken, or another customer once had it. 'limit':
   * the customer has as many buffers as it may. 'ids-spent': it has used as many ids as it may, and this is a new one.
   */
  insert(buffer: NewBuffer): Promise<BufferRecord | 'no-project' | 'exists' | OverCap>
  /** Newest first; `projectId` filters. */
  list(scope: Scope, projectId?: string): Promise<Buffer[]>
  find(scope: Scope, bufferId: string): Promise<BufferRecord | undefined>
  /**
   * Locks the row, asks `change` for the new configuration and stores it; what `change` throws leaves the row
   * as it was. Enabling a disabled buffer sets `consecutiveDlqCount` to 0. undefined: no such buffer.
   */
  update(
    scope: Scope,
    bufferId: string,
    change: (stored: Buffer) => BufferConfig,
  ): Promise<BufferRecord | undefined>
  /**
   * Stores what `make` answers, in the project of the original, which is locked meanwhile: copies of one buffer
   * that are made together take their ids in turn. 'no-id': all are taken. 'unreadable': a secret of the original cannot
   * be opened, so there is nothing to copy. undefined: no such buffer. Else as `insert`.
   */
  copy(
    scope: Scope,
    bufferId: string,
    make: (stored: Buffer) => BufferCopy,
  ): Promise<BufferRecord | 'no-id' | 'unreadable' | OverCap | undefined>
  /** Soft: the row stays under its uid, the id is free again for its customer. */
  softDelete(scope: Scope, bufferId: string): Promise<BufferRecord | undefined>
}

/** Reads of the cache: many rows in one statement. An Error stands for a row that cannot be read (a lost key). */
export interface BufferRows {
  /** Deleted ones too, also those whose row is removed while it is known whose they were. */
  byUids(uids: readonly string[]): Promise<Map<string, BufferRecord | Error>>
  /** Not the deleted ones. */
  byIds(bufferIds: readonly string[]): Promise<Map<string, BufferRecord | Error>>
}

/** The node's cache, told of what was just committed here. */
export interface BufferRecords {
  accept(record: BufferRecord): void
}

/** Outcome of one attempt to deliver. */
export interface AttemptResult {
  delivered: boolean
  /** HTTP status, 0 when no response arrived. */
  statusCode: number
  /** null when delivered. */
  error: string | null
  durationMs: number
  /** The first 4 KB of the response body as text, null when none arrived within a second of its head. */
  responseBody: string | null
}

export interface Deliveries {
  /** One attempt within 10 s of its turn, to permitted addresses only. Never rejects. */
  send(
    target: DeliveryConfig,
    key: string,
    body: Uint8Array,
    options: { flow: string; customerId: string; maxWaitMs: number; readsBody: true },
  ): Promise<AttemptResult>
}
