/** The load generator: a process of its own that sends items and tells what became of them. */
import { quantile } from '../figures.ts'
import { HttpConnection } from './connection.ts'
import { answering, monotonicMs } from './program.ts'
import { type RequestTemplate, requestWriter } from './requests.ts'

interface Load extends RequestTemplate {
  connections: number
  /** Id of the first item; ids go on from there. */
  firstId: number
}

/** As fast as answers come, for `warmMs` and then `measureMs`; keys at random out of `keys`. */
export interface ClosedLoop extends Load {
  kind: 'closed'
  keys: number
  warmMs: number
  measureMs: number
}

/** As fast as answers come, one item for each of the keys `w<firstKey>` and on. */
export interface Fill extends Load {
  kind: 'fill'
  firstKey: number
  items: number
}

/**
 * `rate` items a second whatever the answers do, for `seconds`, each with a key of its own; and as many to
 * `others.url`, with keys out of `w0` to `w<others.keys - 1>`.
 */
export interface OpenLoop extends Load {
  kind: 'open'
  rate: number
  seconds: number
  others: { url: string; keys: number }
}

export interface Sent {
  /** Items answered 202, warm-up included. */
  accepted: number
  /** Requests answered otherwise, or not at all. */
  failed: number
  /** 202 a second in the measured time. */
  perSecond: number
  ackP50Ms: number
  ackP99Ms: number
}

export interface Acked {
  failed: number
  ackP50Ms: number
  ackP99Ms: number
  /** Id and monotonic ms of the 202, of the items with keys of their own. */
  own: [id: number, at: number][]
}

export type GeneratorQuestion = ClosedLoop | Fill | OpenLoop
export interface GeneratorAnswers {
  closed: Sent
  fill: Sent
  open: Acked
}

answering((question: GeneratorQuestion) => {
  switch (question.kind) {
    case 'closed':
      return closedLoop(question)
    case 'fill':
      return fill(question)
    case 'open':
      return openLoop(question)
  }
})

function closedLoop(load: ClosedLoop): Promise<Sent> {
  const start = monotonicMs() + load.warmMs
  const end = start + load.measureMs
  const keyOf = () => `k${String(Math.floor(Math.random() * load.keys)).padStart(6, '0')}`
  return inTurns(load, keyOf, () => monotonicMs() < end, start)
}

function fill(load: Fill): Promise<Sent> {
  const last = load.firstId + load.items
  return inTurns(
    load,
    (id) => `w${load.firstKey + id - load.firstId}`,
    (id) => id < last,
    monotonicMs(),
  )
}

/** Each connection sends its next item when the last one is answered. Answers count from `measureFrom` on. */
async function inTurns(
  load: Load,
  keyOf: (id: number) => string,
  goesOn: (nextId: number) => boolean,
  measureFrom: number,
): Promise<Sent> {
  const write = requestWriter(load)
  const ackMs: number[] = []
  let [accepted, failed, next, lastAt] = [0, 0, load.firstId, 0]
  const lane = () =>
    new Promise<void>((done) => {
      let sentAt = 0
      const connection = new HttpConnection(new URL(load.url), (status) => {
        lastAt = monotonicMs()
        if (status !== 202) failed++
        else {
          accepted++
          if (lastAt >= measureFrom) ackMs.push(lastAt - sentAt)
        }
        if (status === 0) done()
        else send()
      })
      const send = () => {
        if (!goesOn(next)) {
          connection.close()
          done()
          return
        }
        const id = next++
        sentAt = monotonicMs()
        connection.send(write(id, keyOf(id)))
      }
      send()
    })
  await Promise.all(Array.from({ length: load.connections }, lane))
  const perSecond = (ackMs.length / (lastAt - measureFrom)) * 1_000
  return { accepted, failed, perSecond, ackP50Ms: quantile(ackMs, 0.5), ackP99Ms: quantile(ackMs, 0.99) }
}

async function openLoop(load: OpenLoop): Promise<Acked> {
  const { others, rate, firstId } = load
  const writeOwn = requestWriter(load)
  const writeOther = requestWriter({ ...load, url: others.url })
  const own: [number, number][] = []
  const ackMs: number[] = []
  let failed = 0
  const start = monotonicMs()
  await onSchedule(load, start, (turn, sender) => {
    const id = firstId + turn
    const isOwn = turn % 2 === 0
    const text = isOwn
      ? writeOwn(id, `own${id}`)
      : writeOther(id, `w${Math.floor(Math.random() * others.keys)}`)
    sender.send(text, (status) => {
      const now = monotonicMs()
      if (status !== 202) failed++
      else {
        ackMs.push(now - start - (turn / (2 * rate)) * 1_000)
        if (isOwn) own.push([id, now])
      }
    })
  })
  return { failed, ackP50Ms: quantile(ackMs, 0.5), ackP99Ms: quantile(ackMs, 0.99), own }
}

/** Calls `begin` for each turn when its time has come and a connection is free; resolves when all are answered. */
function onSchedule(
  { url, connections, rate, seconds }: OpenLoop,
  start: number,
  begin: (turn: number, sender: Sender) => void,
): Promise<void> {
  const total = 2 * rate * seconds
  const free: Sender[] = []
  for (let i = 0; i < connections; i++) free.push(new Sender(new URL(url), (sender) => free.push(sender)))
  let turn = 0
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(total, Math.floor(((monotonicMs() - start) / 1_000) * 2 * rate))
      for (; turn < due && free.length > 0; turn++) begin(turn, free.pop()!)
      if (turn < total || free.length < connections) return
      clearInterval(timer)
      for (const sender of free) sender.close()
      resolve()
    }, 1)
  })
}

/** A connection with what is to be told of the answer that it waits for. */
class Sender {
  readonly #connection: HttpConnection
  #answered: (status: number) => void = () => {}

  constructor(url: URL, freed: (sender: Sender) => void) {
    this.#connection = new HttpConnection(url, (status) => {
      this.#answered(status)
      freed(this)
    })
  }

  send(request: string, answered: (status: number) => void): void {
    this.#answered = answered
    this.#connection.send(request)
  }

  close(): void {
    this.#connection.close()
  }
}
