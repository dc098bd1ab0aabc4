import { setTimeout as delay } from 'node:timers/promises'

/**
 * Calls `attempt` until it neither throws nor returns false, and returns its value; so it may hold
 * assertions, or return a condition. Rejects with its last error after `timeoutMs`. The default of 30,000 is for busy
 * machines: whoever asserts that something is quick says how quick.
 */
export async function eventually<T>(
  attempt: () => T | Promise<T>,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<Exclude<Awaited<T>, false>> {
  const { timeoutMs = 30_000, everyMs = 10 } = options
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

/**
 * Resolves when `left` tells 0. Rejects when it told nothing lower for `stillMs`, or after `timeoutMs`. Slow work that
 * goes on is waited for, and what stands still is not. A rejection of `left` counts as standing still.
 */
export async function untilNone(
  left: () => number | Promise<number>,
  options: { stillMs: number; timeoutMs: number; everyMs: number },
): Promise<void> {
  const end = performance.now() + options.timeoutMs
  let lowest = Number.POSITIVE_INFINITY
  for (;;) {
    const stillUntil = Math.min(end, performance.now() + options.stillMs)
    const before = lowest
    await eventually(
      async () => {
        lowest = Math.min(lowest, await left())
        return lowest < before
      },
      { timeoutMs: stillUntil - performance.now(), everyMs: options.everyMs },
    ).catch((error: unknown) => {
      throw new Error(`${lowest} are left: ${String(error)}`, { cause: error })
    })
    if (lowest === 0) return
    if (performance.now() > end) throw new Error(`${lowest} are left after ${options.timeoutMs} ms`)
    await delay(options.everyMs)
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
