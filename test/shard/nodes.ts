/** Actor nodes over one real broker and database, for a suite that wants them anew for each of its tests. */
import { expect } from 'chai'
import { afterEach, beforeEach } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createNode, ingest, journalRecords, numbersOf, type OwnerOptions } from './real-owner.ts'
import { SharedLeases } from './shared-leases.ts'

export type TestNode = ReturnType<typeof createNode>

export class Nodes {
  readonly shards: number
  /** In the order of their joining; all of them stop with the test. */
  all: TestNode[] = []
  sharedLeases = new SharedLeases()
  #nats!: TestBroker
  #db!: Database
  #buffer!: TestBuffer

  constructor(shards: number) {
    this.shards = shards
  }

  get broker(): TestBroker['broker'] {
    return this.#nats.broker
  }

  async open(): Promise<void> {
    this.#nats = await brokerAt((await natsAccount()).url, this.shards)
    this.#db = connect(await freshDatabase(), { max: 8 })
    this.#buffer = await insertBuffer(this.#db, await insertCustomer(this.#db))
    this.sharedLeases = new SharedLeases()
    this.all = []
  }

  async close(): Promise<void> {
    for (const { node } of this.all) await node.stop(3_000)
    await this.#nats.close()
    await this.#db.end({ timeout: 2 })
  }

  /** Resolves when it runs what it may. */
  async join(options: Partial<OwnerOptions> = {}, settleMs = 50): Promise<TestNode> {
    const made = createNode(
      { broker: this.broker, db: this.#db, buffer: this.#buffer, ...options },
      this.shards,
      (boot) => this.sharedLeases.join(boot, this.shards),
      settleMs,
    )
    this.all.push(made)
    await made.node.start()
    return made
  }

  ingest(key: string, n: number, shard: number): Promise<number> {
    return ingest(this.broker, this.#buffer, [{ key, n }], shard)
  }

  /** Resolves when they run so many shards each. */
  shared(counts: number[]): Promise<unknown> {
    return eventually(() => expect(this.all.map((each) => runningOn(each).length)).to.deep.equal(counts))
  }

  /** Numbers of all items that were sent, by whom and however often. */
  sent(): number[] {
    return this.all.flatMap((each) => each.sent.flatMap(({ body }) => numbersOf(body)))
  }

  /** Kinds of all records in the journals. */
  async recordTypes(): Promise<string[]> {
    const shards = Array.from({ length: this.shards }, (_, shard) => shard)
    const records = await Promise.all(shards.map((shard) => journalRecords(this.broker, shard)))
    return records.flat().map(({ record }) => record.type)
  }

  /** Resolves once the journals say so of `count` batches. */
  async done(count: number): Promise<void> {
    await eventually(async () => {
      const types = await this.recordTypes()
      expect(types.filter((type) => type === 'done').length).to.equal(count)
    })
  }
}

/** Shards. */
export function runningOn({ node }: TestNode): number[] {
  return [...node.running()].filter(([, shard]) => shard.state === 'running').map(([number]) => number)
}

/** To be called within `describe`. */
export function nodesOfEachTest(shards: number): Nodes {
  const nodes = new Nodes(shards)
  beforeEach(() => nodes.open())
  afterEach(() => nodes.close())
  return nodes
}
