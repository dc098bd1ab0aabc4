/**
 * Which resource stands for which buffer: identifiers are unique in the installation, so of two resources that name one
 * only the first to claim it has it. Only the leader claims; what an earlier one claimed stands in the statuses.
 */
import { keyOf, type Store } from '../controller/ports.ts'
import type { BufferResource } from '../resource.ts'
import { bufferIdOf } from './desired-buffer.ts'

/** Index of the resources by the buffer that they describe. */
export const BUFFER_ID_INDEX = 'bufferId'

export class BufferIdClaims {
  readonly #resources: Store<BufferResource>
  /** uid of the resource that this process claimed an identifier for: its status may not be in the store yet. */
  readonly #claimed = new Map<string, string>()

  constructor(resources: Store<BufferResource>) {
    this.#resources = resources
  }

  /** `namespace/name` of another resource that has the buffer of this one. */
  rivalOf(resource: BufferResource): string | undefined {
    const bufferId = bufferIdOf(resource)
    const { uid } = resource.metadata
    const others = this.#resources
      .byIndex(BUFFER_ID_INDEX, bufferId)
      .filter((other) => other.metadata.uid !== uid)
    const claimant = this.#claimed.get(bufferId)
    if (claimant === uid) return undefined
    const holder =
      others.find((other) => other.metadata.uid === claimant) ??
      (resource.status?.bufferId === undefined
        ? others.find(({ status }) => status?.bufferId === bufferId)
        : undefined)
    return holder && keyOf(holder)
  }

  claim(resource: BufferResource): void {
    this.#claimed.set(bufferIdOf(resource), resource.metadata.uid)
  }

  /** Whether a resource that is there has the buffer. */
  isHeld(bufferId: string): boolean {
    return this.#resources
      .byIndex(BUFFER_ID_INDEX, bufferId)
      .some(({ status }) => status?.bufferId === bufferId)
  }

  /** The resource is gone. */
  release(bufferId: string, uid: string): void {
    if (this.#claimed.get(bufferId) === uid) this.#claimed.delete(bufferId)
  }
}
