/** What a reconciler needs besides what its test is about. */
import type { BufferWriter } from '../../../operator/reconcile/ports.ts'
import type { ReconcilerOptions } from '../../../operator/reconcile/reconciler.ts'
import type { BufferResource } from '../../../operator/resource.ts'

/** Parts that do nothing, and no jitter. */
export const quietParts = {
  randomness: { fraction: () => 0.5, bytes: (size) => new Uint8Array(size) },
  events: { record: () => {} },
  log: { info: () => {} },
  service: { returns: 0, answered: () => {}, missed: () => {}, forget: () => {} },
  follower: { use: () => {} },
} satisfies Partial<ReconcilerOptions>

/** Both kinds of writes go to `write`, which answers what is stored. */
export function writerTo(write: (resource: BufferResource) => Promise<BufferResource>): BufferWriter {
  return {
    setFinalizers: (each, finalizers) => write({ ...each, metadata: { ...each.metadata, finalizers } }),
    applyStatus: (each, status) => write({ ...each, status }),
  }
}
