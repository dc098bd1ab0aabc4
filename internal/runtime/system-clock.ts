/** The machine's own time and randomness. */
import { randomBytes } from 'node:crypto'
import type { Clock, Randomness } from './clock.ts'

/** Longest delay that a timer of Node takes; a longer one would fire at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1

export function systemClock(): Clock {
  return { now: () => Date.now(), monotonic: () => performance.now(), after }
}

export function systemRandomness(): Randomness {
  return { bytes: pooledBytes(), fraction: () => Math.random() }
}

/** Bytes drawn ahead: a call of the system's generator costs the same for 12 bytes as for thousands. */
const POOL_BYTES = 8_192

function pooledBytes(): (size: number) => Uint8Array {
  let pool = Buffer.alloc(0)
  return (size) => {
    if (size > POOL_BYTES) return randomBytes(size)
    if (size > pool.length) pool = randomBytes(POOL_BYTES)
    const drawn = Uint8Array.prototype.slice.call(pool, 0, size)
    pool = pool.subarray(size)
    return drawn
  }
}

function after(ms: number, task: () => void): () => void {
  if (ms <= 0) return nextTurn(task)
  const due = performance.now() + ms
  const fire = () => {
    const left = due - performance.now()
    if (left > LONGEST_DELAY_MS) timer = setTimeout(fire, LONGEST_DELAY_MS)
    else if (ms > LONGEST_DELAY_MS && left > 1) timer = setTimeout(task, left)
    else task()
  }
  let timer = setTimeout(fire, Math.min(ms, LONGEST_DELAY_MS))
  return () => clearTimeout(timer)
}

/** A timer of 0 ms would wait for 1 ms. */
function nextTurn(task: () => void): () => void {
  const turn = setImmediate(task)
  return () => clearImmediate(turn)
}
