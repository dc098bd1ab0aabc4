import { setTimeout as delay } from 'node:timers/promises'

/**
 * Calls `attempt` until it neither throws nor returns false, and returns its value; so it may hold
 * assertions, or return a condition. Rejects with its last error after `timeoutMs` (default 10,000).
 */
export async function eventually<T>(
  attempt: () => T | Promise<T>,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<Exclude<Awaited<T>, false>> {
  const { timeoutMs = 10_000, everyMs = 10 } = options
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const last = await tryOnce(attempt)
    if ('value' in last) return last.value
    if (performance.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${String(last.error)}`, { cause: last.error })
    }
    await delay(everyMs)
  }
}

type Outcome<T> = { value: Exclude<Awaited<T>, false> } | { error: unknown }

async function tryOnce<T>(attempt: () => T | Promise<T>): Promise<Outcome<T>> {
  try {
    const value = await attempt()
    return value === false
      ? { error: 'the condition is false' }
      : { value: value as Exclude<Awaited<T>, false> }
  } catch (error) {
    return { error }
  }
}
