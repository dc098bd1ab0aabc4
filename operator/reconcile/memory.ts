/**
 * What this process remembers of a resource between passes. None of it is needed to be right, only to be sparing (and to
 * delete a buffer whose Secret went first): an operator that starts anew has none.
 */
import type { BufferResource } from '../resource.ts'
import { bufferIdOf } from './desired-buffer.ts'
import type { BufferState } from './ports.ts'

export interface Remembered {
  readonly uid: string
  readonly bufferId: string
  /** As the API server answered this process's last write: the store may show an older one for a moment. */
  written?: BufferResource
  /** The key that last reached the buffer. */
  key?: string
  /** The key that the Secret last had. */
  readKey?: string
  /** Since when the Secret of the deleted resource is known to be gone, monotonic ms. */
  strandedSince?: number
  /** See Observed: nothing that is at the service can come of the intent in the status. */
  claimed?: boolean
  /** What the service last agreed to or refused, and until when that counts, monotonic ms; undefined: not looked at yet. */
  settled?: Settled | null
  /** The service asked for patience until then, monotonic ms; `returns`: or until it has come back more often than so. */
  deferred?: { readonly until: number; readonly returns?: number }
  /** The buffer as a pass last saw it. */
  seen?: Pick<BufferState, 'enabled' | 'pausedAt' | 'updatedAt'>
  /** As the service last told; null: it told of none. */
  state?: BufferState | null
  /** The service told of a change, and no look has followed yet. */
  hasNews?: true
  /** One that was told while a pass ran, and that another look followed. */
  lookedFor?: BufferState
  /** When a pass wrote nothing but counts, monotonic ms. */
  countedAt?: number
  /** Writes in a row that met a newer resource than was read. */
  conflicts?: number
  /** Answers with Retry-After in a row. */
  deferrals: number
}

/** `fingerprint`: of everything whose change asks for another look. */
export interface Settled {
  readonly fingerprint: string
  readonly until: number
}

export class Memory {
  readonly #entries = new Map<string, Remembered>()

  /** Of this very resource: one that was made anew under the name inherits nothing. */
  of(key: string, resource: BufferResource): Remembered {
    const { uid } = resource.metadata
    const found = this.#entries.get(key)
    if (found?.uid === uid) return found
    const entry = { uid, bufferId: bufferIdOf(resource), deferrals: 0 }
    this.#entries.set(key, entry)
    return entry
  }

  /** Of a resource that a pass has met. */
  get(key: string): Remembered | undefined {
    return this.#entries.get(key)
  }

  /** Whether a pass of this process has met this very resource. */
  knows(key: string, { metadata }: BufferResource): boolean {
    return this.#entries.get(key)?.uid === metadata.uid
  }

  /** What was remembered of a resource of the name that is not there any more; `uid`: of the one that is. */
  forget(key: string, uid?: string): Remembered | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.uid === uid) return undefined
    this.#entries.delete(key)
    return entry
  }
}

/** The newer of what the store shows and what this process wrote: resource versions grow. */
export function newest(stored: BufferResource, written: BufferResource | undefined): BufferResource {
  if (written === undefined || written.metadata.uid !== stored.metadata.uid) return stored
  return BigInt(written.metadata.resourceVersion) > BigInt(stored.metadata.resourceVersion) ? written : stored
}
