/**
 * A process that does nothing but ask for a timer every few milliseconds: how late each fires is how long the machine let
 * somebody wait who had next to nothing to do. What a service does in such a pause nobody can tell from its own delay.
 */
import { answering, monotonicMs } from './program.ts'

export type WatchQuestion = { kind: 'begin' } | { kind: 'end' }
export interface WatchAnswers {
  begin: null
  /** How late each timer since `begin` fired, ms. */
  end: Float64Array
}

const EVERY_MS = 5

let late: number[] = []
let timer: NodeJS.Timeout | undefined

function next(): void {
  const due = monotonicMs() + EVERY_MS
  timer = setTimeout(() => {
    late.push(Math.max(0, monotonicMs() - due))
    next()
  }, EVERY_MS)
}

answering(({ kind }: WatchQuestion) => {
  clearTimeout(timer)
  const answer = kind === 'end' ? Float64Array.from(late) : null
  late = []
  if (kind === 'begin') next()
  return answer
})
