/**
 * Resources that the API server removed although the finalizer held them: a DELETE that read one before it was finalized
 * removes it all the same (kubernetes/kubernetes#77988). Their buffers go as those of all deleted resources. Only this
 * process knows of them, by its watch: one that ends or loses the watch in that very moment leaves the buffer behind.
 */
import { keyOf } from '../controller/ports.ts'
import type { BufferResource } from '../resource.ts'
import { isHeld } from './deletion.ts'
import { isUnmanaged } from './left-alone.ts'

export class Vanished {
  readonly #resources = new Map<string, BufferResource>()

  /** `last`: as it was removed. `now`: Unix epoch ms. */
  note(last: BufferResource, now: number): void {
    const { metadata } = last
    // One that was being deleted was let go by whoever took the finalizer off: the operator, or somebody by hand.
    if (metadata.deletionTimestamp !== undefined || !isHeld(metadata.finalizers)) return
    // Nobody can take the annotation off any more.
    if (isUnmanaged(last)) return
    const deletionTimestamp = new Date(now).toISOString()
    this.#resources.set(keyOf(last), { ...last, metadata: { ...metadata, deletionTimestamp } })
  }

  /** As one that is being deleted; one that was made anew under its name waits until it is let go. */
  get(key: string): BufferResource | undefined {
    return this.#resources.get(key)
  }

  letGo(key: string): void {
    this.#resources.delete(key)
  }
}
