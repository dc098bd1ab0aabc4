/**
 * The simulation's streams against the real server: the same seeded random operations through the same port must
 * give the same answers and leave the same contents, also over restarts. `SIM_SEED` sets the first seed.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { nanos, headers as natsHeaders } from 'nats'
import type { NatsServer } from '../../internal/embedded/nats-server.ts'
import { createBroker, type NatsBroker } from '../../internal/nats/broker.ts'
import type { Connection } from '../../internal/nats/connection.ts'
import { readPubAck } from '../../internal/nats/log/append.ts'
import { journalName } from '../../internal/nats/names.ts'
import { streamConfig } from '../../internal/nats/streams/stream-config.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { AppendAnswer, Log, LogMessage, LogState } from '../../internal/shard/broker.ts'
import { connectTo } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { seededFractions } from '../support/seeded.ts'
import { ownNats } from '../support/servers.ts'
import { Stream } from './simulation/streams.ts'

const FIRST = Number(process.env.SIM_SEED ?? 1)
const STREAMS = 4
const ROUNDS = 3
const STEPS = 60
const MAX_BYTES = 3_000
/** Longer than the test: no id is forgotten by time. */
const WINDOW_MS = 120_000
const TIMEOUT_MS = 5_000

/** Bytes that the server counts: its record, subject, headers, data (a file store's record has 30 bytes around them). */
function storedSize(subject: string) {
  return (data: Uint8Array, msgId: string | null, expect: number | undefined): number => {
    const id = msgId === null ? '' : `Nats-Msg-Id: ${msgId}\r\n`
    const expected = expect === undefined ? '' : `Nats-Expected-Last-Sequence: ${expect}\r\n`
    const head = id || expected ? `NATS/1.0\r\n${id}${expected}\r\n`.length + 4 : 0
    return 30 + subject.length + head + data.length
  }
}

/** What an answer is, and where: texts of errors are the server's own. */
function kindOf(answer: AppendAnswer): unknown {
  return answer.kind === 'unknown' ? { kind: 'unknown' } : answer
}

function contentOf(message: LogMessage | undefined): unknown {
  if (!message) return undefined
  return { seq: message.seq, msgId: message.msgId, data: Buffer.from(message.data).toString() }
}

describe('the simulated broker beside the real one', function () {
  this.timeout(120_000)
  let server: NatsServer
  let connection: Connection
  let broker: NatsBroker

  before(async () => {
    server = await ownNats()
    connection = (await connectTo(server.url)).connection
    broker = createBroker(connection, { clock: systemClock() })
  })
  after(async () => {
    broker.close()
    await connection.close()
    await server.stop()
  })

  async function create(shard: number, windowMs: number): Promise<Pair> {
    const plan = { name: journalName(shard), maxBytes: MAX_BYTES, replicas: 1 }
    const made = streamConfig({ ...plan, createdAt: Date.now(), metadata: {} })
    const config = { ...made, duplicate_window: nanos(windowMs) }
    const manager = await connection.nats.jetstreamManager()
    await manager.streams.add(config)
    const firstSeq = (config as { first_seq: number }).first_seq
    const sizeOf = storedSize(plan.name.appendTo)
    const model = new Stream({ windowMs, maxBytes: MAX_BYTES, sizeOf, firstSeq })
    return new Pair(broker.journal(shard), model, connection, plan.name.appendTo)
  }

  it(`gives the same answers to the same operations, seeds ${FIRST} to ${FIRST + STREAMS - 1}`, async () => {
    const pairs: { pair: Pair; random: () => number; seed: number }[] = []
    for (let at = 0; at < STREAMS; at++) {
      const seed = FIRST + at
      pairs.push({ pair: await create(at, WINDOW_MS), random: seededFractions(seed), seed })
    }
    const seen = new Map<string, number>()
    for (let round = 0; round < ROUNDS; round++) {
      for (const { pair, random, seed } of pairs) {
        for (let step = 0; step < STEPS; step++) {
          const { what, real, model } = await pair.step(random)
          expect(real, `seed ${seed}, round ${round}, step ${step}: ${what}`).to.deep.equal(model)
          seen.set(what, (seen.get(what) ?? 0) + 1)
        }
        expect(await pair.realContents(), `seed ${seed}, round ${round}`).to.deep.equal(pair.modelContents())
      }
      await restart(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
      for (const { pair, seed } of pairs) {
        pair.model.restart()
        expect(await pair.realContents(), `seed ${seed}, restarted`).to.deep.equal(pair.modelContents())
      }
    }
    for (const what of KINDS) expect(seen.get(what) ?? 0, what).to.be.greaterThan(5)
  })

  it('forgets an id when its window is over, and not before', async () => {
    const { log, model } = await create(STREAMS, 1_000)
    const append = () => log.append(Buffer.from('x'), { msgId: 'one', timeoutMs: TIMEOUT_MS })
    const first = await append()
    expect(first).to.deep.equal(model.append(0, Buffer.from('x'), 'one'))
    const again = await eventually(async () => {
      const answer = await append()
      return answer.kind === 'stored' && !answer.duplicate && answer
    })
    expect(model.append(999, Buffer.from('x'), 'one')).to.include({ duplicate: true })
    expect(again).to.deep.equal(model.append(1_000, Buffer.from('x'), 'one'))
  })

  async function restart(signal: NodeJS.Signals): Promise<void> {
    server.kill(signal)
    await server.exited
    await server.restart()
    await eventually(() => connection.connected)
    await eventually(() => broker.journal(0).state())
  }
})

const KINDS = [
  'append: stored',
  'append: duplicate',
  'append: wrong-sequence',
  'append: full',
  'append without id: stored',
  'append without id: wrong-sequence',
  'state',
  'get',
  'last',
  'range',
  'purge',
]

/** One stream in both worlds. */
class Pair {
  readonly log: Log
  readonly model: Stream
  readonly #connection: Connection
  readonly #subject: string
  #ids = 0

  constructor(log: Log, model: Stream, connection: Connection, subject: string) {
    this.log = log
    this.model = model
    this.#connection = connection
    this.#subject = subject
  }

  /** One random operation on both, and what they answered. */
  async step(random: () => number): Promise<{ what: string; real: unknown; model: unknown }> {
    const { log, model } = this
    const luck = random()
    if (luck < 0.6) return this.#append(random)
    if (luck < 0.72) {
      return { what: 'state', real: await this.#realState(), model: model.state() }
    }
    const seq = this.#somewhere(random)
    if (luck < 0.74)
      return { what: 'get', real: contentOf(await log.get(seq)), model: contentOf(model.get(seq)) }
    if (luck < 0.88)
      return { what: 'last', real: contentOf(await log.last()), model: contentOf(model.messages.at(-1)) }
    if (luck < 0.93) return this.#range(seq, seq + Math.floor(random() * 12))
    await log.purgeBelow(seq)
    model.purgeBelow(seq)
    return { what: 'purge', real: await this.#realState(), model: model.state() }
  }

  async #append(random: () => number): Promise<{ what: string; real: unknown; model: unknown }> {
    const data = Buffer.alloc(Math.floor(random() * random() * 900), 'x')
    const msgId = this.#msgId(random())
    const expected = this.#expected(random)
    const real =
      msgId === null
        ? await this.#publish(data, expected)
        : await this.log.append(data, {
            msgId,
            timeoutMs: TIMEOUT_MS,
            ...(expected !== undefined && { expectLastSeq: expected }),
          })
    const model = this.model.append(Date.now(), data, msgId, expected)
    const outcome = model.kind === 'stored' && model.duplicate ? 'duplicate' : model.kind
    return {
      what: `append${msgId === null ? ' without id' : ''}: ${outcome}`,
      real: kindOf(real),
      model: kindOf(model),
    }
  }

  /** A new one, one of the last, or none. */
  #msgId(luck: number): string | null {
    if (luck < 0.15) return null
    if (luck < 0.6 || this.#ids === 0) return `id-${++this.#ids}`
    return `id-${Math.max(1, this.#ids - Math.floor((luck - 0.6) * 50))}`
  }

  /** None, the right one, or a wrong one. */
  #expected(random: () => number): number | undefined {
    const luck = random()
    if (luck < 0.4) return undefined
    if (luck < 0.75) return this.model.lastSeq
    if (luck < 0.78) return 0
    return this.model.lastSeq + Math.floor(random() * 8) - 5
  }

  /** The port always names an id. */
  async #publish(data: Uint8Array, expected: number | undefined): Promise<AppendAnswer> {
    const headers = natsHeaders()
    if (expected !== undefined) headers.set('Nats-Expected-Last-Sequence', `${expected}`)
    const options = { timeout: TIMEOUT_MS, ...(expected !== undefined && { headers }) }
    return readPubAck((await this.#connection.nats.request(this.#subject, data, options)).data)
  }

  async #range(from: number, to: number): Promise<{ what: string; real: unknown; model: unknown }> {
    const real: unknown[] = []
    for await (const message of this.log.range(from, to)) real.push(contentOf(message))
    const model = this.model.from(from, Number.POSITIVE_INFINITY).filter(({ seq }) => seq <= to)
    return { what: 'range', real, model: model.map(contentOf) }
  }

  /** From below the first to beyond the last. */
  #somewhere(random: () => number): number {
    const { firstSeq, lastSeq } = this.model.state()
    return firstSeq - 3 + Math.floor(random() * (lastSeq - firstSeq + 8))
  }

  /** Without the server's time. */
  async #realState(): Promise<LogState> {
    const { at: _, ...state } = await this.log.state()
    return state
  }

  async realContents(): Promise<unknown> {
    const state = await this.#realState()
    const messages: unknown[] = []
    for await (const message of this.log.range(state.firstSeq, state.lastSeq))
      messages.push(contentOf(message))
    return { state, messages }
  }

  modelContents(): unknown {
    return { state: this.model.state(), messages: this.model.messages.map(contentOf) }
  }
}
