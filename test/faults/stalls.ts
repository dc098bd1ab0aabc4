/** Notices when the machine stands still: a timer of this process comes much too late. */
import type { Stall } from './history.ts'

const EVERY_MS = 100
/** What counts, ms; less is the ordinary life of a busy machine. */
const LEAST_MS = 500

/** Adds stalls to the list until the returned function is called. */
export function noteStalls(stalls: Stall[]): () => void {
  let last = Date.now()
  const timer = setInterval(() => {
    const now = Date.now()
    if (now - last > EVERY_MS + LEAST_MS) stalls.push({ from: last, to: now })
    last = now
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
