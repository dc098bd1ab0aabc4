/** Loaded into the service under measurement (`--import`): tells how late its event loop was since it was last asked. */

export const DELAY_QUESTION = 'delay'

/**
 * How late a tick of the loop was, ms beyond the timer's own time. The share of a quantile is of time, not of ticks: a loop
 * that stands still for 50 ms in 100 has one late tick among fifty, but is late for whoever comes in half of the time.
 */
export interface Delay {
  p50: number
  p99: number
  max: number
}

const TICK_MS = 1

export function delayOf(ticksMs: readonly number[]): Delay {
  const sorted = Float64Array.from(ticksMs).sort()
  const late = (ms: number) => Math.max(0, ms - TICK_MS)
  const all = sorted.reduce((sum, ms) => sum + ms, 0)
  const at = (share: number) => {
    let upTo = 0
    for (const ms of sorted) {
      upTo += ms
      if (upTo >= share * all) return late(ms)
    }
    return 0
  }
  return { p50: at(0.5), p99: at(0.99), max: late(sorted.at(-1) ?? 0) }
}

// The one who asks reads the names above from the same file, and has no channel.
if (process.channel) {
  let ticks: number[] = []
  let last = performance.now()
  setInterval(() => {
    const now = performance.now()
    ticks.push(now - last)
    last = now
  }, TICK_MS).unref()
  process.on('message', (question: unknown) => {
    if (question !== DELAY_QUESTION) return
    process.send!(delayOf(ticks))
    ticks = []
  })
  process.channel.unref()
}
