/**
 * The simulation's archive against the real server: the same seeded random operations must give the same answers and leave
 * the same contents, also over restarts. `SIM_SEED` sets the first seed.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { NatsServer } from '../../internal/embedded/nats-server.ts'
import { createBroker, type NatsBroker } from '../../internal/nats/broker.ts'
import type { Connection } from '../../internal/nats/connection.ts'
import { archiveName } from '../../internal/nats/names.ts'
import { streamConfig } from '../../internal/nats/streams/stream-config.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { Archive, LogMessage } from '../../internal/shard/broker.ts'
import { connectTo } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { seededFractions } from '../support/seeded.ts'
import { ownNats } from '../support/servers.ts'
import { ArchiveStream } from './simulation/archive.ts'

const FIRST = Number(process.env.SIM_SEED ?? 1)
const STREAMS = 4
const ROUNDS = 3
const STEPS = 60
const MAX_BYTES = 3_000
/** Longer than the test: no id is forgotten by time. */
const WINDOW_MS = 120_000
const TIMEOUT_MS = 5_000
const FILTERS = ['>', 'probe', 'snapshot.>', 'snapshot.1.>', 'snapshot.*.a.0', 'snapshot.2.a', 'snapshot.*']

interface Step {
  what: string
  real: unknown
  model: unknown
}

describe('the simulated archive beside the real one', function () {
  this.timeout(120_000)
  let server: NatsServer
  let connection: Connection
  let broker: NatsBroker

  before(async () => {
    server = await ownNats()
    ;({ connection } = await connectTo(server.url))
    broker = createBroker(connection, { clock: systemClock() })
  })
  after(async () => {
    broker.close()
    await connection.close()
    await server.stop()
  })

  async function create(shard: number): Promise<Pair> {
    const name = archiveName(shard)
    const createdAt = Date.now()
    const config = streamConfig({ name, maxBytes: MAX_BYTES, replicas: 1, createdAt, metadata: {} })
    await (await connection.nats.jetstreamManager()).streams.add(config)
    // Bytes that the server counts, as in `simulation-broker.test.ts`.
    const sizeOf = (data: Uint8Array, msgId: string, subject: string) =>
      34 +
      name.root.length +
      subject.length +
      `NATS/1.0\r\nNats-Msg-Id: ${msgId}\r\n\r\n`.length +
      data.length
    const limits = { windowMs: WINDOW_MS, maxBytes: MAX_BYTES, sizeOf, firstSeq: createdAt * 1000 }
    return new Pair(broker.archive(shard), new ArchiveStream(limits))
  }

  it(`gives the same answers to the same operations, seeds ${FIRST} to ${FIRST + STREAMS - 1}`, async () => {
    const pairs: { pair: Pair; random: () => number; seed: number }[] = []
    for (let at = 0; at < STREAMS; at++)
      pairs.push({ pair: await create(at), random: seededFractions(FIRST + at), seed: FIRST + at })
    const seen = new Map<string, number>()
    for (let round = 0; round < ROUNDS; round++) {
      for (const { pair, random, seed } of pairs) {
        for (let step = 0; step < STEPS; step++) {
          const { what, real, model } = await pair.step(random)
          expect(real, `seed ${seed}, round ${round}, step ${step}: ${what}`).to.deep.equal(model)
          seen.set(what, (seen.get(what) ?? 0) + 1)
        }
      }
      server.kill(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
      await server.exited
      await server.restart()
      await eventually(() => connection.connected)
      await eventually(() => broker.archive(0).state())
      for (const { pair, seed } of pairs) {
        pair.model.restart()
        const { real, model } = await pair.state()
        expect(real, `seed ${seed}, restarted`).to.deep.equal(model)
      }
    }
    for (const what of ['append: stored', 'append: duplicate', 'append: full', 'list', 'last', 'remove'])
      expect(seen.get(what) ?? 0, what).to.be.greaterThan(5)
  })
})

/** One stream in both worlds. */
class Pair {
  readonly #archive: Archive
  readonly model: ArchiveStream
  #ids = 0

  constructor(archive: Archive, model: ArchiveStream) {
    this.#archive = archive
    this.model = model
  }

  /** One random operation on both, and what they answered. */
  async step(random: () => number): Promise<Step> {
    const filter = FILTERS[Math.floor(random() * FILTERS.length)]!
    const luck = random()
    if (luck < 0.6) return this.#append(random)
    if (luck < 0.75) return this.#list(filter)
    if (luck < 0.9) return this.#last(subjectBy(random))
    await this.#archive.remove(filter)
    this.model.remove(filter)
    return { ...(await this.state()), what: 'remove' }
  }

  /** Without the server's time. */
  async state(): Promise<Step> {
    const { at: _, ...real } = await this.#archive.state()
    return { what: 'state', real, model: this.model.state() }
  }

  /** A new id, or one of the last. */
  async #append(random: () => number): Promise<Step> {
    const data = Buffer.alloc(Math.floor(random() * random() * 900), 'x')
    const old = random() < 0.25 && this.#ids > 0
    const msgId = `id-${old ? Math.max(1, this.#ids - Math.floor(random() * 20)) : ++this.#ids}`
    const subject = subjectBy(random)
    const real = await this.#archive.append(data, { subject, msgId, timeoutMs: TIMEOUT_MS })
    const model = this.model.append(Date.now(), data, msgId, subject)
    const outcome = model.kind === 'stored' && model.duplicate ? 'duplicate' : model.kind
    return { what: `append: ${outcome}`, real, model }
  }

  async #list(filter: string): Promise<Step> {
    const sorted = (list: { lastSeq: number; subjects: string[] }) => ({
      ...list,
      subjects: list.subjects.sort(),
    })
    const [real, model] = [await this.#archive.list(filter), this.model.list(filter)].map(sorted)
    return { what: 'list', real, model }
  }

  async #last(subject: string): Promise<Step> {
    const [real, model] = [await this.#archive.lastOf(subject), this.model.lastOf(subject)].map(contentOf)
    return { what: 'last', real, model }
  }
}

function subjectBy(random: () => number): string {
  const below = (limit: number) => Math.floor(random() * limit)
  if (random() < 0.15) return 'probe'
  return `snapshot.${below(3)}.${'ab'[below(2)]}.${below(3)}`
}

function contentOf(message: LogMessage | undefined): unknown {
  return message && { seq: message.seq, msgId: message.msgId, data: Buffer.from(message.data).toString() }
}
