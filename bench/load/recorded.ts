/** Loads of which every item is remembered: what the analysis of a round is made from. */
import { HttpConnection } from './connection.ts'
import { type Keys, keyName, keyNumbers } from './keys.ts'
import { monotonicMs } from './program.ts'
import { type RequestTemplate, requestWriter } from './requests.ts'
import { onSchedule } from './schedule.ts'

export interface Recording extends RequestTemplate {
  kind: 'recorded'
  connections: number
  /** Id of the first item; ids go on from there. */
  firstId: number
  keys: Keys
  seed: number
  /** Items a second whatever the answers do. Unset: each connection sends when it has its answer. */
  rate?: number
  /** Time in which items are sent. */
  ms: number
}

/** Item n has id `firstId + n`; times are monotonic ms. */
export interface Recorded {
  firstId: number
  /** Number of the key. */
  keys: Uint32Array
  /** When it was to be sent: as `sentAt` without a rate. */
  dueAt: Float64Array
  sentAt: Float64Array
  /** Of the 202; NaN: answered otherwise, or not at all. */
  ackedAt: Float64Array
  /** Status and body of the first answer other than 202; status 0: the connection broke. */
  firstFailure?: string
}

export async function record(load: Recording): Promise<Recorded> {
  const log = new Log(load)
  if (load.rate === undefined) await inTurns(load, log)
  else await atRate(load, load.rate, log)
  return log.recorded()
}

class Log {
  readonly #firstId: number
  readonly #key: () => number
  readonly #keys: number[] = []
  readonly #dueAt: number[] = []
  readonly #sentAt: number[] = []
  readonly #ackedAt: number[] = []
  #firstFailure: string | undefined

  constructor({ firstId, keys, seed }: Recording) {
    this.#firstId = firstId
    this.#key = keyNumbers(keys, seed)
  }

  /** The next item: its place and its key. */
  next(): [n: number, key: string] {
    const key = this.#key()
    this.#ackedAt.push(Number.NaN)
    return [this.#keys.push(key) - 1, keyName(key)]
  }

  sent(n: number, at: number, dueAt = at): void {
    this.#sentAt[n] = at
    this.#dueAt[n] = dueAt
  }

  answered(n: number, at: number, status: number, body: Buffer): void {
    if (status === 202) this.#ackedAt[n] = at
    else this.#firstFailure ??= `${status} ${body.toString('utf8', 0, 200)}`
  }

  recorded(): Recorded {
    return {
      firstId: this.#firstId,
      keys: Uint32Array.from(this.#keys),
      dueAt: Float64Array.from(this.#dueAt),
      sentAt: Float64Array.from(this.#sentAt),
      ackedAt: Float64Array.from(this.#ackedAt),
      ...(this.#firstFailure !== undefined && { firstFailure: this.#firstFailure }),
    }
  }
}

async function inTurns(load: Recording, log: Log): Promise<void> {
  const write = requestWriter(load)
  const end = monotonicMs() + load.ms
  const worker = () =>
    new Promise<void>((done) => {
      let current = 0
      const connection = new HttpConnection(new URL(load.url), (status, body) => {
        const at = monotonicMs()
        log.answered(current, at, status, body)
        if (status !== 0 && at < end) return send()
        connection.close()
        done()
      })
      const send = () => {
        const [n, key] = log.next()
        current = n
        const text = write(load.firstId + n, key)
        log.sent(n, monotonicMs())
        connection.send(text)
      }
      send()
    })
  await Promise.all(Array.from({ length: load.connections }, worker))
}

function atRate(load: Recording, rate: number, log: Log): Promise<void> {
  const write = requestWriter(load)
  const { url, connections, ms } = load
  const start = monotonicMs()
  const dueAt = (turn: number) => start + (turn / rate) * 1_000
  return onSchedule({ url, connections, total: (rate * ms) / 1_000, dueAt }, (turn, sender) => {
    const [n, key] = log.next()
    const text = write(load.firstId + n, key)
    log.sent(n, monotonicMs(), dueAt(turn))
    sender.send(text, (status, body) => log.answered(n, monotonicMs(), status, body))
  })
}
