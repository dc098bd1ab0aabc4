/** A piece of the section: its table, and the figures of it that have a goal. */
import type { Goal } from './goals.ts'

export interface Part {
  /** Markdown. */
  text: string
  goals: Goal[]
}
