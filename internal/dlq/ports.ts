/** What the dead letter queue needs of Postgres. Every call rejects while it is away. */

import type { DlqItem } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'

export interface DeadLetterFilter {
  /** Caller-chosen id; rows of a deleted buffer keep theirs. */
  bufferId?: string | undefined
  /** 1 to 500. */
  limit: number
}

export interface DeadLetterStore {
  /** Newest first. */
  list(scope: Scope, filter: DeadLetterFilter): Promise<DlqItem[]>
  /** Whether the scope holds a buffer with this id that is not deleted. */
  hasBuffer(scope: Scope, bufferId: string): Promise<boolean>
  /** Of any customer: the caller checks whose it is. */
  find(dlqId: string): Promise<DlqItem | undefined>
  /** The exact body that failed; null: not stored; undefined: no such item. */
  body(dlqId: string): Promise<Uint8Array | null | undefined>
  /** Removes the item with its body, and leaves a tombstone for the owner where one is needed. false: no such item. */
  remove(dlqId: string): Promise<boolean>
}
