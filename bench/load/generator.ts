/** The load generator: a process of its own that sends items and tells what became of them. */
import { quantile } from '../figures.ts'
import { HttpConnection } from './connection.ts'
import { keyName } from './keys.ts'
import { answering, monotonicMs } from './program.ts'
import { type Recorded, type Recording, record } from './recorded.ts'
import { type RequestTemplate, requestWriter } from './requests.ts'
import { onSchedule } from './schedule.ts'

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

/**
 * As fast as answers come, through `slices` of time from `startAt` (monotonic ms) on; keys as above. What happens
 * before the first and after the last is accepted but counts nowhere.
 */
export interface SlicedLoop extends Load {
  kind: 'sliced'
  keys: number
  startAt: number
  sliceMs: number
  slices: number
}

/** As fast as answers come, one item for each of the keys numbered `firstKey` and on. */
export interface Fill extends Load {
  kind: 'fill'
  firstKey: number
  items: number
}

/**
 * `rate` items a second whatever the answers do, for `seconds`, each with a key of its own; and as many to
 * `others.url`, with keys out of the first `others.keys`.
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

export interface Sliced {
  accepted: number
  failed: number
  /** Acknowledgements of each slice. */
  counts: number[]
  /** Of the slices 0, 2, 4, … and of the slices 1, 3, 5, …, by the time of the answer. */
  ackP50Ms: [number, number]
  ackP99Ms: [number, number]
}

export interface Acked {
  failed: number
  ackP50Ms: number
  ackP99Ms: number
  /** Id and monotonic ms of the 202, of the items with keys of their own. */
  own: [id: number, at: number][]
}

export type GeneratorQuestion = ClosedLoop | SlicedLoop | Fill | OpenLoop | Recording
export interface GeneratorAnswers {
  closed: Sent
  sliced: Sliced
  fill: Sent
  open: Acked
  recorded: Recorded
}

answering((question: GeneratorQuestion) => {
  switch (question.kind) {
    case 'closed':
      return closedLoop(question)
    case 'sliced':
      return slicedLoop(question)
    case 'fill':
      return fill(question)
    case 'open':
      return openLoop(question)
    case 'recorded':
      return record(question)
  }
})

function closedLoop(load: ClosedLoop): Promise<Sent> {
  const start = monotonicMs() + load.warmMs
  const end = start + load.measureMs
  return measured(load, anyKeyOf(load.keys), () => monotonicMs() < end, start)
}

function fill(load: Fill): Promise<Sent> {
  const last = load.firstId + load.items
  return measured(
    load,
    (id) => keyName(load.firstKey + id - load.firstId),
    (id) => id < last,
    monotonicMs(),
  )
}

/** Answers count from `measureFrom` on. */
async function measured(
  load: Load,
  keyOf: (id: number) => string,
  goesOn: (nextId: number) => boolean,
  measureFrom: number,
): Promise<Sent> {
  const ackMs: number[] = []
  let lastAt = measureFrom
  const sums = await inTurns(load, keyOf, goesOn, (at, ms) => {
    lastAt = at
    if (at >= measureFrom) ackMs.push(ms)
  })
  const perSecond = (ackMs.length / (lastAt - measureFrom)) * 1_000
  return { ...sums, perSecond, ackP50Ms: quantile(ackMs, 0.5), ackP99Ms: quantile(ackMs, 0.99) }
}

async function slicedLoop(load: SlicedLoop): Promise<Sliced> {
  const { startAt, sliceMs, slices } = load
  const end = startAt + slices * sliceMs
  const counts = new Array<number>(slices).fill(0)
  const ackMs: [number[], number[]] = [[], []]
  const sums = await inTurns(
    load,
    anyKeyOf(load.keys),
    () => monotonicMs() < end,
    (at, ms) => {
      const slice = Math.floor((at - startAt) / sliceMs)
      if (slice < 0 || slice >= slices) return
      counts[slice]!++
      ackMs[slice % 2 === 0 ? 0 : 1].push(ms)
    },
  )
  const [even, odd] = ackMs
  return {
    ...sums,
    counts,
    ackP50Ms: [quantile(even, 0.5), quantile(odd, 0.5)],
    ackP99Ms: [quantile(even, 0.99), quantile(odd, 0.99)],
  }
}

function anyKeyOf(keys: number): () => string {
  return () => keyName(Math.floor(Math.random() * keys))
}

/** Each connection sends its next item when the last one is answered; `acked`: monotonic ms, and ms since it was sent. */
async function inTurns(
  load: Load,
  keyOf: (id: number) => string,
  goesOn: (nextId: number) => boolean,
  acked: (at: number, ms: number) => void,
): Promise<{ accepted: number; failed: number }> {
  const write = requestWriter(load)
  let [accepted, failed, next] = [0, 0, load.firstId]
  const worker = () =>
    new Promise<void>((done) => {
      let sentAt = 0
      const connection = new HttpConnection(new URL(load.url), (status) => {
        const at = monotonicMs()
        if (status !== 202) failed++
        else {
          accepted++
          acked(at, at - sentAt)
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
  await Promise.all(Array.from({ length: load.connections }, worker))
  return { accepted, failed }
}

async function openLoop(load: OpenLoop): Promise<Acked> {
  const { others, rate, firstId } = load
  const writeOwn = requestWriter(load)
  const writeOther = requestWriter({ ...load, url: others.url })
  const anyOther = anyKeyOf(others.keys)
  const own: [number, number][] = []
  const ackMs: number[] = []
  let failed = 0
  const start = monotonicMs()
  const dueAt = (turn: number) => start + (turn / (2 * rate)) * 1_000
  const schedule = { ...load, dueAt, total: 2 * rate * load.seconds }
  await onSchedule(schedule, (turn, sender) => {
    const id = firstId + turn
    const isOwn = turn % 2 === 0
    const text = isOwn ? writeOwn(id, `own${id}`) : writeOther(id, anyOther())
    sender.send(text, (status) => {
      const now = monotonicMs()
      if (status !== 202) failed++
      else {
        ackMs.push(now - dueAt(turn))
        if (isOwn) own.push([id, now])
      }
    })
  })
  return { failed, ackP50Ms: quantile(ackMs, 0.5), ackP99Ms: quantile(ackMs, 0.99), own }
}
