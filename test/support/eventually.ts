import { setTimeout as delay } from 'node:timers/promises'

/**
 * Calls `attempt` until it neither throws nor returns false or undefined, and returns its value. Rejects
 * with its last error after `timeoutMs` (default 10,000).
 */
export async function eventually<T>(
  attempt: () => T | Promise<T>,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<Exclude<Awaited<T>, false | undefined | void>> {
  const { timeoutMs = 10_000, everyMs = 10 } = options
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const last = await tryOnce(attempt)
    if ('value' in last) return last.value as Exclude<Awaited<T>, false | undefined | void>
    if (performance.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${String(last.error)}`, { cause: last.error })
    }
    await delay(everyMs)
  }
}

async function tryOnce<T>(
  attempt: () => T | Promise<T>,
): Promise<{ value: Awaited<T> } | { error: unknown }> {
  try {
    const value = await attempt()
    return value === false || value === undefined ? { error: `got ${String(value)}` } : { value }
  } catch (error) {
    return { error }
  }
}
