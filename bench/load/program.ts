/** Load generator and sink run in processes of their own; each answers one question at a time. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export class Program<Question extends { kind: string }, Answers> {
  readonly #child: ChildProcess
  readonly #ended: Promise<never>

  constructor(file: string) {
    this.#child = fork(join(import.meta.dirname, file), {
      execPath: process.execPath,
      // Answers may hold typed arrays.
      serialization: 'advanced',
    })
    const kill = () => this.#child.kill('SIGKILL')
    process.once('exit', kill)
    this.#ended = once(this.#child, 'exit').then(([code]) => {
      process.off('exit', kill)
      throw new Error(`the program ended with ${code}`)
    })
    this.#ended.catch(() => {})
  }

  get pid(): number {
    return this.#child.pid!
  }

  /** Rejects when the program ends instead of answering. */
  async ask<K extends Question['kind'] & keyof Answers>(
    question: Extract<Question, { kind: K }>,
  ): Promise<Answers[K]> {
    this.#child.send(question)
    const [answer] = (await Promise.race([once(this.#child, 'message'), this.#ended])) as [Answers[K]]
    return answer
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.#ended.catch(() => {})
  }
}

/** The other end: answers every question with what `reply` resolves to. */
export function answering<Question>(reply: (question: Question) => unknown): void {
  process.on('message', async (question: Question) => {
    process.send!(await reply(question))
  })
  // Whoever asks is gone: nobody needs this process any more.
  process.on('disconnect', () => process.exit(0))
}

/** Monotonic ms, the same in all processes of this machine. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
