/** A clock that stands still until the next task is due. */
import type { Clock } from '../../../internal/runtime/clock.ts'

interface Task {
  readonly at: number
  run: (() => void) | undefined
}

export class VirtualTime implements Clock {
  #now: number
  /** A binary heap by `at`. */
  readonly #tasks: Task[] = []

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
    this.#push(task)
    return () => {
      task.run = undefined
    }
  }

  /** Runs what is due before `end`, in order, and stops there. */
  runUntil(end: number): void {
    for (let first = this.#tasks[0]; first !== undefined && first.at < end; first = this.#tasks[0]) {
      this.#pop()
      this.#now = Math.max(this.#now, first.at)
      first.run?.()
    }
    this.#now = end
  }

  #push(task: Task): void {
    const tasks = this.#tasks
    let at = tasks.length
    tasks.push(task)
    for (let parent = (at - 1) >> 1; at > 0 && tasks[parent]!.at > task.at; parent = (at - 1) >> 1) {
      tasks[at] = tasks[parent]!
      at = parent
    }
    tasks[at] = task
  }

  #pop(): void {
    const tasks = this.#tasks
    const last = tasks.pop()!
    if (tasks.length === 0) return
    let at = 0
    for (let child = 1; child < tasks.length; child = 2 * at + 1) {
      if (child + 1 < tasks.length && tasks[child + 1]!.at < tasks[child]!.at) child++
      if (tasks[child]!.at >= last.at) break
      tasks[at] = tasks[child]!
      at = child
    }
    tasks[at] = last
  }
}
