/** A clock that stands still until the next task is due. */
import type { Clock } from '../../internal/runtime/clock.ts'
import { Heap } from '../../internal/runtime/heap.ts'

interface Task {
  readonly at: number
  run: (() => void) | undefined
}

export class VirtualTime implements Clock {
  #now: number
  readonly #tasks = new Heap<Task>((one, other) => one.at < other.at)

  /** Unix ms. */
  constructor(start: number) {
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now
  }

  after(ms: number, run: () => void): () => void {
    const task: Task = { at: this.#now + ms, run }
    this.#tasks.push(task)
    return () => {
      task.run = undefined
    }
  }

  /** Runs what is due before `end`, in order, and stops there. */
  runUntil(end: number): void {
    for (let first = this.#tasks.first; first !== undefined && first.at < end; first = this.#tasks.first) {
      this.#tasks.pop()
      this.#now = Math.max(this.#now, first.at)
      first.run?.()
    }
    this.#now = end
  }
}
