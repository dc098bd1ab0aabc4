/** How a stored message is read again, and what must be known before it is missing (docs/architecture/protocol.md, "Memory"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Broker, Log, LogMessage } from '../../internal/shard/broker.ts'
import type { MessageLog } from '../../internal/shard/held/payload-cache.ts'
import { JournalClosedError } from '../../internal/shard/journal/journal.ts'
import { messageReader } from '../../internal/shard/message-reader.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

const MESSAGE = 3
const LATER = 10

/** Two logs without the message that is asked for. */
class Logs {
  /** Of the servers that answer, one after the other; the last one answers on. */
  servers: ('has it' | 'has it not' | 'is behind')[] = ['has it not']
  closed = false
  needed = true
  /** A commit is done with what is in the message while it is looked for. */
  overMeanwhile = false
  /** In the order in which they came. */
  readonly asked: string[] = []
  readonly told: string[] = []

  async read(source: MessageLog): Promise<string> {
    const clock = new ManualClock()
    const broker = { inbox: () => this.#log, journal: () => this.#log } as unknown as Broker
    const read = messageReader({
      broker,
      shard: 0,
      journal: { prove: () => this.#prove() },
      clock,
      ended: () => false,
      onProblem: (_, error) => this.told.push((error as Error).message),
    })
    let answer = ''
    read(source, MESSAGE, () => this.needed).then(
      (message) => {
        answer = message ? 'found' : 'not needed'
      },
      ({ name }: Error) => {
        answer = name
      },
    )
    while (answer === '') {
      await new Promise(setImmediate)
      clock.advance(500)
    }
    return answer
  }

  async #prove(): Promise<void> {
    this.asked.push('proof')
    if (this.closed) throw new JournalClosedError('closed')
  }

  #answer(from: number, to: number): LogMessage[] {
    const server = this.servers.length > 1 ? this.servers.shift() : this.servers[0]
    const seqs = server === 'is behind' ? [] : server === 'has it' ? [MESSAGE, LATER] : [LATER]
    const messages = seqs.map((seq) => ({ seq, at: 0, data: Buffer.alloc(1), msgId: null }))
    return messages.filter(({ seq }) => seq >= from && seq <= to)
  }

  readonly #log = {
    get: async (seq: number) => {
      this.asked.push('get')
      return this.#answer(seq, seq)[0]
    },
    range: async function* (this: Logs, from: number, to: number) {
      this.asked.push('range')
      if (this.overMeanwhile) this.needed = false
      yield* this.#answer(from, to)
    }.bind(this),
  } as unknown as Log
}

for (const source of ['journal', 'inbox'] as const) {
  describe(`a message of the ${source} that memory gave up`, () => {
    it('is read once when it is there', async () => {
      const logs = new Logs()
      logs.servers = ['has it']
      expect(await logs.read(source)).to.equal('found')
      expect(logs.asked).to.deep.equal(['get'])
    })

    it('is missing where a server has a later one, and a proof follows', async () => {
      const logs = new Logs()
      expect(await logs.read(source)).to.equal('MissingMessageError')
      expect(logs.asked).to.deep.equal(['get', 'range', 'proof'])
      expect(logs.told).to.deep.equal([])
    })

    it('is read again while a server is behind, and that is told once', async () => {
      const logs = new Logs()
      logs.servers = ['is behind', 'is behind', 'is behind', 'is behind', 'has it']
      expect(await logs.read(source)).to.equal('found')
      expect(logs.told).to.deep.equal(['a server that was behind has no messages from 3 on'])
    })

    it('is not asked for again when nothing in it is needed any more', async () => {
      const logs = new Logs()
      logs.needed = false
      expect(await logs.read(source)).to.equal('not needed')
      expect(logs.asked).to.deep.equal(['get'])
    })

    it('is not missing when it is needed no more once it was looked for', async () => {
      const logs = new Logs()
      logs.overMeanwhile = true
      expect(await logs.read(source)).to.equal('not needed')
    })

    it('is not waited for once the journal is closed', async () => {
      const logs = new Logs()
      logs.closed = true
      expect(await logs.read(source)).to.equal('JournalClosedError')
    })
  })
}
