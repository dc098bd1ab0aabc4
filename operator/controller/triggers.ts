/** Which keys a change makes due. A pass reads the stores, so what the change was does not matter. */
import type { Cache } from './cache.ts'
import type { Named, Store } from './ports.ts'
import type { WorkQueue } from './work-queue.ts'

/** Each change of a resource makes itself due. */
export function enqueueChanged<T extends Named>(cache: Cache<T>, queue: WorkQueue): void {
  cache.subscribe(({ key }) => queue.add(key))
}

/**
 * Each change of a resource makes those due that name it in `index`, by its key: also those that named it before it was
 * there, and those that still name it when it is gone.
 */
export function enqueueReferrers<T extends Named, R extends Named>(
  cache: Cache<T>,
  referrers: { store: Store<R>; index: string; keyOf(referrer: R): string },
  queue: WorkQueue,
): void {
  cache.subscribe(({ key }) => {
    for (const referrer of referrers.store.byIndex(referrers.index, key)) queue.add(referrers.keyOf(referrer))
  })
}
