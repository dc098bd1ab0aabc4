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

/** As fast as answers come, one item for each key `<prefix><0 … items - 1>`. */
export interface Fill extends Load {
  kind: 'fill'
  prefix: string
  items: number
}

/** `rate` items a second whatever the answers do, for `seconds`; each with the key of its turn. */
export interface OpenLoop extends Load {
  kind: 'open'
  rate: number
  seconds: number
  /** Every second item goes to one of `<others.prefix><0 … others.keys - 1>`, the rest to keys of their own. */
  others: { prefix: string; keys: number }
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
    (id) => `${load.prefix}${id - load.firstId}`,
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
  const write = requestWriter(load)
  const free: Sender[] = []
  const own: [number, number][] = []
  const ackMs: number[] = []
  let [failed, open] = [0, 0]
  const total = load.rate * load.seconds
  const { promise, resolve } = Promise.withResolvers<void>()
  const answered = (sender: Sender, status: number) => {
    const now = monotonicMs()
    if (status === 202) {
      ackMs.push(now - sender.dueAt)
      if (sender.own) own.push([sender.id, now])
    } else failed++
    open--
    free.push(sender)
  }
  const senders = Array.from({ length: load.connections }, () => new Sender(new URL(load.url), answered))
  free.push(...senders)
  const start = monotonicMs()
  let sent = 0
  const tick = setInterval(() => {
    const due = Math.min(total, Math.floor(((monotonicMs() - start) / 1_000) * load.rate))
    for (let sender = free.at(-1); sent < due && sender; sender = free.at(-1)) {
      free.pop()
      const isOwn = sent % 2 === 0
      const id = load.firstId + sent
      const other = `${load.others.prefix}${Math.floor(Math.random() * load.others.keys)}`
      open++
      sender.send(id, isOwn, start + (sent / load.rate) * 1_000, write(id, isOwn ? `own${id}` : other))
      sent++
    }
    if (sent === total && open === 0) resolve()
  }, 1)
  await promise
  clearInterval(tick)
  for (const sender of senders) sender.close()
  return { failed, ackP50Ms: quantile(ackMs, 0.5), ackP99Ms: quantile(ackMs, 0.99), own }
}

class Sender {
  id = 0
  own = false
  /** Scheduled time, monotonic ms: a service that stalls cannot hide it. */
  dueAt = 0
  readonly #connection: HttpConnection

  constructor(url: URL, answered: (sender: Sender, status: number) => void) {
    this.#connection = new HttpConnection(url, (status) => answered(this, status))
  }

  send(id: number, own: boolean, dueAt: number, request: string): void {
    this.id = id
    this.own = own
    this.dueAt = dueAt
    this.#connection.send(request)
  }

  close(): void {
    this.#connection.close()
  }
}
