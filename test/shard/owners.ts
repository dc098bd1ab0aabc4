/** Owners of a shard on the real NATS and Postgres, for a suite that wants both anew for each of its tests. */
import { expect } from 'chai'
import { afterEach, beforeEach } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { SNAPSHOTS, snapshotsOf } from '../../internal/shard/archive/snapshot-subjects.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createOwner, ingest, journalRecords, type Owner, type OwnerOptions } from './real-owner.ts'

export class Owners {
  /** Those that this test made; all of them end with it. */
  made: Owner[] = []
  readonly #defaults: Partial<OwnerOptions>
  readonly #storeBytes: number | undefined
  #nats!: TestBroker
  #db!: Database
  #buffer!: TestBuffer

  /** `storeBytes`: what the logs of the shard may take; default as `brokerAt`. */
  constructor(defaults: Partial<OwnerOptions>, storeBytes?: number) {
    this.#defaults = defaults
    this.#storeBytes = storeBytes
  }

  get broker(): TestBroker['broker'] {
    return this.#nats.broker
  }

  get connection(): TestBroker['connection'] {
    return this.#nats.connection
  }

  get db(): Database {
    return this.#db
  }

  get buffer(): TestBuffer {
    return this.#buffer
  }

  /** It has not claimed yet. */
  make(options: Partial<OwnerOptions> = {}): Owner {
    const given = { broker: this.broker, db: this.db, buffer: this.buffer }
    const owner = createOwner({ ...given, ...this.#defaults, ...options })
    this.made.push(owner)
    return owner
  }

  /** Resolves when it runs. */
  async own(options: Partial<OwnerOptions> = {}): Promise<Owner> {
    const owner = this.make(options)
    await owner.shard.start()
    await eventually(() => owner.shard.state === 'running')
    return owner
  }

  /** One pack of the buffer; answers its sequence. */
  ingest(items: Parameters<typeof ingest>[2]): Promise<number> {
    return ingest(this.broker, this.buffer, items)
  }

  records(): ReturnType<typeof journalRecords> {
    return journalRecords(this.broker)
  }

  /** The commits of complete snapshots, the newest first. */
  async snapshots(): Promise<number[]> {
    const { subjects } = await this.broker.archive(0).list(SNAPSHOTS)
    return snapshotsOf(subjects).flatMap(({ name, hasEnd }) => (hasEnd ? name.seq : []))
  }

  /** Resolves once the journal says so of `count` batches. */
  async done(count: number): Promise<void> {
    await eventually(async () => {
      const records = await this.records()
      expect(records.filter(({ record }) => record.type === 'done').length).to.equal(count)
    })
  }

  async open(): Promise<void> {
    this.#nats = await brokerAt((await natsAccount()).url, 1, this.#storeBytes)
    this.#db = connect(await freshDatabase(), { max: 4 })
    this.#buffer = await insertBuffer(this.#db, await insertCustomer(this.#db))
    this.made = []
  }

  async close(): Promise<void> {
    await Promise.all(this.made.map(({ shard }) => shard.abandon()))
    await this.#nats.close()
    await this.#db.end({ timeout: 2 })
  }
}

/** To be called within `describe`; `defaults`: of every owner in it. `storeBytes` as in `Owners`. */
export function ownersOfEachTest(defaults: Partial<OwnerOptions> = {}, storeBytes?: number): Owners {
  const owners = new Owners(defaults, storeBytes)
  beforeEach(() => owners.open())
  afterEach(() => owners.close())
  return owners
}
