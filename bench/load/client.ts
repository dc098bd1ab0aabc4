/** The client of the management API: a process of its own, like the load generator. */
import { quantile } from '../figures.ts'
import type { Account } from './account.ts'
import { AdminMix, type AdminRequest, type ReadName, reads, requestText } from './admin-requests.ts'
import { answering, monotonicMs } from './program.ts'
import { onSchedule, Sender } from './schedule.ts'

interface Target {
  /** Base address. */
  url: string
  headers: Record<string, string>
  account: Account
}

/** The mix, `perSecond` requests whatever the answers do, for `ms`. */
export interface Mix extends Target {
  kind: 'mix'
  perSecond: number
  ms: number
  /** Monotonic ms; default: at once. */
  startAt?: number
  /** Set: it rests for as long as it works, so it has `ms` of every 2 × `ms`, this often. */
  times?: number
  /** Whether what could not be sent by the end is left out. */
  endsOnTime?: boolean
}

/** One read after the other: `times` of it, fewer when they take longer than `maxMs` together. */
export interface Read extends Target {
  kind: 'read'
  name: ReadName
  times: number
  maxMs: number
}

export interface Told {
  requests: number
  failed: number
  /** Method, path and status of the first that failed. */
  firstFailure?: string
  /** From the time at which a request was due to the end of its answer. */
  p50Ms: number
  p99Ms: number
  /** Median of the bodies. */
  bytes: number
}

export type ClientQuestion = Mix | Read
export interface ClientAnswers {
  mix: Told
  read: Told
}

const CONNECTIONS = 16

answering((question: ClientQuestion) => (question.kind === 'mix' ? mix(question) : read(question)))

async function mix({ account, ms, perSecond, times = 1, ...rest }: Mix): Promise<Told> {
  const { url, headers, startAt = monotonicMs(), endsOnTime = false } = rest
  const until = endsOnTime ? startAt + ms : Number.POSITIVE_INFINITY
  const requests = new AdminMix(account)
  const answers = new Answers()
  const atOnce = (perSecond * ms) / 1_000
  const dueAt = (turn: number) =>
    startAt + Math.floor(turn / atOnce) * 2 * ms + ((turn % atOnce) / perSecond) * 1_000
  await onSchedule({ url, connections: CONNECTIONS, total: atOnce * times, dueAt, until }, (turn, sender) => {
    const request = requests.request(turn)
    sender.send(requestText(request, new URL(url), headers), (status, body) => {
      answers.add(request, status, body, monotonicMs() - dueAt(turn))
      if (isSuccess(status)) requests.answered(request, body)
    })
  })
  return answers.told()
}

async function read({ account, name, times, maxMs, url, headers }: Read): Promise<Told> {
  const answers = new Answers()
  const end = monotonicMs() + maxMs
  const sender = new Sender(new URL(url), () => {})
  for (let time = 0; time < times && monotonicMs() < end; time++) {
    const request: AdminRequest = { method: 'GET', path: reads[name](account) }
    const sentAt = monotonicMs()
    await new Promise<void>((resolve) => {
      sender.send(requestText(request, new URL(url), headers), (status, body) => {
        // What ran for the first time tells of the compiler.
        if (time > 0) answers.add(request, status, body, monotonicMs() - sentAt)
        resolve()
      })
    })
  }
  sender.close()
  return answers.told()
}

class Answers {
  readonly #ms: number[] = []
  readonly #bytes: number[] = []
  #failed = 0
  #firstFailure: string | undefined

  add({ method, path }: AdminRequest, status: number, body: Buffer, ms: number): void {
    this.#ms.push(ms)
    this.#bytes.push(body.length)
    if (isSuccess(status)) return
    this.#failed++
    this.#firstFailure ??= `${method} ${path}: ${status} ${body.toString('utf8', 0, 200)}`
  }

  told(): Told {
    return {
      requests: this.#ms.length,
      failed: this.#failed,
      ...(this.#firstFailure !== undefined && { firstFailure: this.#firstFailure }),
      p50Ms: quantile(this.#ms, 0.5),
      p99Ms: quantile(this.#ms, 0.99),
      bytes: quantile(this.#bytes, 0.5),
    }
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}
