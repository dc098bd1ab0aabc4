/** An open loop: requests go out when their time has come, whatever became of those before. */
import { type Answered, HttpConnection } from './connection.ts'
import { monotonicMs } from './program.ts'

export interface Schedule {
  url: string
  connections: number
  /** Requests in all. */
  total: number
  /** Monotonic ms at which a turn is due, ascending. Whoever measures from there counts the wait, too. */
  dueAt(turn: number): number
  /** Monotonic ms after which no turn begins, also when some are left. Default: never. */
  until?: number
}

/** Calls `begin` for each turn when its time has come and a connection is free; resolves when all are answered. */
export function onSchedule(
  { url, connections, total, dueAt, until = Number.POSITIVE_INFINITY }: Schedule,
  begin: (turn: number, sender: Sender) => void,
): Promise<void> {
  const free: Sender[] = []
  for (let i = 0; i < connections; i++) free.push(new Sender(new URL(url), (sender) => free.push(sender)))
  let turn = 0
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const now = monotonicMs()
      for (; turn < total && free.length > 0 && dueAt(turn) <= now; turn++) {
        begin(turn, free.pop()!)
      }
      if (now >= until) turn = total
      if (turn < total || free.length < connections) return
      clearInterval(timer)
      for (const sender of free) sender.close()
      resolve()
    }, 1)
  })
}

/**
 * A connection with what is to be told of the answer that it waits for. It is made when it is first needed (the
 * server closes one that brings no request for long) and again when it broke.
 */
export class Sender {
  readonly #url: URL
  readonly #freed: (sender: Sender) => void
  #connection: HttpConnection | undefined
  #answered: Answered | undefined

  constructor(url: URL, freed: (sender: Sender) => void) {
    this.#url = url
    this.#freed = freed
  }

  send(request: string, answered: Answered): void {
    this.#answered = answered
    this.#connection ??= new HttpConnection(this.#url, (status, body) => this.#received(status, body))
    this.#connection.send(request)
  }

  close(): void {
    this.#connection?.close()
  }

  #received(status: number, body: Buffer): void {
    if (status === 0) this.#connection = undefined
    const answered = this.#answered
    if (answered === undefined) return
    this.#answered = undefined
    answered(status, body)
    this.#freed(this)
  }
}
