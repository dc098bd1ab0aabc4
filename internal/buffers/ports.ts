/** What the use cases of buffers need: rows of Postgres, and the node's own cache (design, section 7). */

import type { Buffer, BufferConfig, BufferRecord } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'

export interface NewBuffer {
  /** Lower-case UUID, the internal identity. */
  uid: string
  bufferId: string
  customerId: string
  projectId: string
  config: BufferConfig
}

/** Rows of buffers; deleted ones do not exist here. Every call rejects while the database is away. */
export interface BufferStore {
  /** 'no-project': no such project of this customer. 'exists': the id is taken, by whomever. */
  insert(buffer: NewBuffer): Promise<BufferRecord | 'no-project' | 'exists'>
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
  /** Soft: the row stays under its uid, the id is free again. */
  softDelete(scope: Scope, bufferId: string): Promise<BufferRecord | undefined>
}

/** Reads of the cache: many rows in one statement. An Error stands for a row that cannot be read (a lost key). */
export interface BufferRows {
  /** Deleted ones too. */
  byUids(uids: readonly string[]): Promise<Map<string, BufferRecord | Error>>
  /** Not the deleted ones. */
  byIds(bufferIds: readonly string[]): Promise<Map<string, BufferRecord | Error>>
}

/** The node's cache, told of what was just committed here. */
export interface BufferRecords {
  accept(record: BufferRecord): void
}
