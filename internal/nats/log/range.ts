/** A bounded reading of a log, built on the endless one. */
import type { Clock } from '../../runtime/clock.ts'
import type { Log, LogMessage } from '../../shard/broker.ts'

/** Without a message for so long, what is still there is asked for again, ms. */
const IDLE_MS = 2_000

/** Messages with from <= seq <= to that are there, in order. Rejects when the broker does not answer. */
export async function* readRange(
  log: Log,
  clock: Clock,
  from: number,
  to: number,
): AsyncGenerator<LogMessage> {
  const end = await endOf(log, from, to)
  if (end === undefined) return
  const batches = new PendingMessages(clock)
  const reading = log.follow(
    from,
    (messages) => batches.offer(messages),
    (error) => batches.failed(error),
  )
  let next = from
  try {
    for (;;) {
      const batch = await batches.next()
      // Purged meanwhile to the last message, or lost from its end: nothing would ever come.
      if (batch === undefined && (await endOf(log, next, end)) === undefined) return
      for (const message of batch ?? []) {
        if (message.seq > to) return
        yield message
        if (message.seq >= end) return
        next = message.seq + 1
      }
    }
  } finally {
    await reading.stop()
  }
}

/** The sequence at or above which the range is complete; undefined when nothing of it is there. */
async function endOf(log: Log, from: number, to: number): Promise<number | undefined> {
  const { firstSeq, lastSeq, messages } = await log.state()
  const end = Math.min(to, lastSeq)
  return messages === 0 || end < Math.max(from, firstSeq) ? undefined : end
}

/** Hands batches over one at a time: the reading goes on when the previous one is used up. */
class PendingMessages {
  readonly #clock: Clock
  #offered: LogMessage[] | undefined
  #release: (() => void) | undefined
  #wake: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  offer(messages: LogMessage[]): Promise<void> {
    this.#offered = messages
    this.#wake?.()
    return new Promise((release) => {
      this.#release = release
    })
  }

  /** The reading goes on by itself; whoever waits looks whether there is still something to come. */
  failed(_error: Error): void {
    this.#wake?.()
  }

  /** The next batch; undefined when none came for a while. */
  async next(): Promise<LogMessage[] | undefined> {
    this.#release?.()
    this.#release = undefined
    if (this.#offered === undefined) await this.#arrival()
    const batch = this.#offered
    this.#offered = undefined
    return batch
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(IDLE_MS, resolve)
      this.#wake = () => {
        cancel()
        this.#wake = undefined
        resolve()
      }
    })
  }
}
