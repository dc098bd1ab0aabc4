/** The machine's own time and randomness. */
import { randomBytes } from 'node:crypto'
import type { Clock, Randomness } from './clock.ts'

/** Longest delay that a timer of Node takes; a longer one would fire at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1

export function systemClock(): Clock {
  return { now: () => Date.now(), monotonic: () => performance.now(), after }
}

export function systemRandomness(): Randomness {
  return { bytes: (size) => randomBytes(size), fraction: () => Math.random() }
}

function after(ms: number, task: () => void): () => void {
  const due = performance.now() + ms
  const fire = () => {
    const left = due - performance.now()
    if (left > LONGEST_DELAY_MS) timer = setTimeout(fire, LONGEST_DELAY_MS)
    else if (ms > LONGEST_DELAY_MS && left > 1) timer = setTimeout(task, left)
    else task()
  }
  let timer = setTimeout(fire, Math.min(Math.max(ms, 0), LONGEST_DELAY_MS))
  return () => clearTimeout(timer)
}
