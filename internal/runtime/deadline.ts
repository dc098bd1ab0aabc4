import type { Clock } from './clock.ts'

/** What was waited for did not come in time; it may still come, nobody listens. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}

/** `work`, or a rejection with DeadlineError after `ms` milliseconds. */
export function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(new DeadlineError(`no answer within ${ms} ms`)))
    work.then(resolve, reject).finally(cancel)
  })
}
