import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import {
  DiscardPolicy,
  type JetStreamManager,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamUpdateConfig,
} from 'nats'
import { giveTo, NATS, userOf } from '../../internal/embedded/server-user.ts'
import type { Connection } from '../../internal/nats/connection.ts'
import { inboxName, journalName } from '../../internal/nats/names.ts'
import { type ReportedConfig, streamConfig, streamFaults } from '../../internal/nats/streams/stream-config.ts'
import type { StreamOptions } from '../../internal/nats/streams/stream-making.ts'
import { ensureStreams } from '../../internal/nats/streams/streams.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { natsAccount, ownNats } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { connectTo, STORE_BYTES_PER_SHARD } from './support.ts'

const MEGABYTE = 1024 * 1024

async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt
  } catch (error) {
    expect((error as Error).name).to.equal('UnusableBrokerError')
    expect((error as Error).message).not.to.contain('\n')
    return (error as Error).message
  }
  throw new Error('was not refused')
}

describe('streams at the start', () => {
  let connection: Connection
  let manager: JetStreamManager

  const ensure = (changes: Partial<StreamOptions> = {}) => {
    const shards = changes.shards ?? 2
    const defaults = { clock: systemClock(), shards, replicas: 1, storeBytes: shards * STORE_BYTES_PER_SHARD }
    return ensureStreams(connection, { ...defaults, ...changes })
  }
  const names = async () => {
    const list: string[] = []
    for await (const name of manager.streams.names()) list.push(name)
    return list.sort()
  }
  const sizes = async () => {
    const all: Record<string, number> = {}
    for (const name of await names()) all[name] = (await manager.streams.info(name)).config.max_bytes
    return all
  }
  /** What is missing for a while is lost: with this clock after 1.5 s. */
  const quick = () => {
    const system = systemClock()
    return { ...system, monotonic: () => 10 * system.monotonic() }
  }
  const store = (subject: string) => connection.nats.request(subject, 'x', { timeout: 10_000 })

  beforeEach(async () => {
    ;({ connection } = await connectTo((await natsAccount()).url))
    manager = await connection.nats.jetstreamManager()
  })
  afterEach(() => connection.close())

  it('are made as documented', async () => {
    await ensure()
    const made = ['ARCHIVE_0', 'ARCHIVE_1', 'INBOX_0', 'INBOX_1', 'JOURNAL_0', 'JOURNAL_1']
    expect(await names()).to.deep.equal(made)
    const { config } = await manager.streams.info('INBOX_1')
    expect(config).to.deep.include({
      subjects: ['items.1.>'],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      max_age: 0,
      max_msgs: -1,
      max_msgs_per_subject: -1,
      duplicate_window: nanos(120_000),
      num_replicas: 1,
      allow_direct: false,
      deny_delete: true,
    })
    const journal = (await manager.streams.info('JOURNAL_1')).config
    expect(journal).to.deep.include({ subjects: ['journal.1'], duplicate_window: nanos(120_000) })
    expect(journal.max_bytes).to.equal(config.max_bytes + 32 * MEGABYTE)
    const archive = (await manager.streams.info('ARCHIVE_1')).config
    const { allow_direct, deny_delete, deny_purge } = archive
    expect({ allow_direct, deny_delete, deny_purge }).to.deep.equal({
      allow_direct: false,
      deny_delete: true,
      deny_purge: false,
    })
    expect(archive).to.deep.include({ subjects: ['archive.1.>'], max_bytes: 32 * MEGABYTE })
    for (const name of made) {
      const { metadata } = (await manager.streams.info(name)).config
      expect(metadata, name).to.deep.include({ 'penstock.shards': '2', 'penstock.complete': 'true' })
    }
  })

  it('of a former version remember ids for as long as new ones from the next start on', async () => {
    await ensure()
    await manager.streams.update('INBOX_1', { duplicate_window: nanos(30_000) })
    await ensure()
    expect((await manager.streams.info('INBOX_1')).config.duplicate_window).to.equal(nanos(120_000))
  })

  it('stand at the next start, also of two nodes at once', async () => {
    await Promise.all([ensure(), ensure(), ensure()])
    await store('items.0.mixed')
    await ensure()
    expect((await manager.streams.info('INBOX_0')).state.messages).to.equal(1)
  })

  it('live beside others under a prefix', async () => {
    await ensure({ prefix: 'A_' })
    await ensure({ prefix: 'B_', shards: 1 })
    await store('A_items.0.mixed')
    expect(await names())
      .to.include.members(['A_INBOX_1', 'B_INBOX_0'])
      .and.not.include('B_INBOX_1')
    await ensure({ prefix: 'A_' })
  })

  it('go on after an interrupted first start', async () => {
    await ensure()
    for (const name of (await names()).filter((each) => each !== 'INBOX_1')) {
      const { config } = await manager.streams.info(name)
      const { 'penstock.complete': _, ...metadata } = config.metadata ?? {}
      await manager.streams.update(name, { metadata })
    }
    await manager.streams.delete('INBOX_1')
    await ensure()
    expect(await names()).to.include('INBOX_1')
  })

  it('are refused when one is missing that was there', async () => {
    await ensure()
    await manager.streams.delete('JOURNAL_1')
    const text = await refusal(ensure({ clock: quick() }))
    expect(text).to.contain('JOURNAL_1 is missing')
    expect(await names()).not.to.include('JOURNAL_1')
  })

  describe('without the archive of a shard', () => {
    it('get it while nothing of the journal was ever removed, and nothing else changes', async () => {
      await ensure()
      await manager.streams.update('INBOX_1', { max_bytes: 640 * MEGABYTE })
      for (const name of ['ARCHIVE_0', 'ARCHIVE_1']) await manager.streams.delete(name)
      await store('journal.0')
      await store('items.0.mixed')
      const before = await sizes()
      await ensure({ clock: quick(), storeBytes: 100_000 * MEGABYTE })
      const { ARCHIVE_0, ARCHIVE_1, ...others } = await sizes()
      expect(others).to.deep.equal(before)
      expect([ARCHIVE_0, ARCHIVE_1]).to.deep.equal([32 * MEGABYTE, 32 * MEGABYTE])
      expect((await manager.streams.info('JOURNAL_0')).state.messages).to.equal(1)
      await store('archive.1.probe')
      await ensure()
      expect((await manager.streams.info('ARCHIVE_1')).state.messages).to.equal(1)
    })

    for (const [what, stored] of [
      ['cut', 2],
      ['emptied', 0],
    ] as const) {
      it(`are refused when the journal was ${what}, for its snapshots are gone`, async () => {
        await ensure()
        for (let n = 0; n < 3; n++) await store('journal.1')
        await manager.streams.purge('JOURNAL_1', { keep: stored })
        await manager.streams.delete('ARCHIVE_0')
        await manager.streams.delete('ARCHIVE_1')
        const text = await refusal(ensure({ clock: quick() }))
        expect(text).to.contain('ARCHIVE_1 is missing, but JOURNAL_1 is cut').and.contain('restore a backup')
        expect(await names()).to.deep.equal(['INBOX_0', 'INBOX_1', 'JOURNAL_0', 'JOURNAL_1'])
      })
    }
  })

  it('are waited for when one is unknown for a moment, as to a server that has just come to lead', async () => {
    await ensure()
    const { config } = await manager.streams.info('JOURNAL_1')
    await manager.streams.delete('JOURNAL_1')
    const system = systemClock()
    let waits = 0
    const after = (ms: number, task: () => void) => {
      if (++waits === 3) void manager.streams.add(config)
      return system.after(ms, task)
    }
    await ensure({ clock: { ...system, after } })
    expect(waits).to.be.within(3, 20)
  })

  it('begin anew with another shard count while no item was ever stored', async () => {
    await ensure()
    await store('journal.0')
    await ensure({ shards: 1 })
    expect(await names()).to.deep.equal(['ARCHIVE_0', 'INBOX_0', 'JOURNAL_0'])
    await ensure({ shards: 3 })
    expect((await names()).length).to.equal(9)
  })

  it('are made also when the broker cannot create the store of one for a moment', async () => {
    const dir = join(tempFolder('streams'), 'nats')
    await connection.close()
    ;({ connection } = await connectTo((await ownNats({ dir })).url))
    manager = await connection.nats.jetstreamManager()
    // In the way of the stream's folder; the broker removes it when it gives up.
    const folder = join(dir, 'store', 'jetstream', 'penstock', 'streams')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'INBOX_0'), '')
    giveTo(userOf(NATS), join(dir, 'store'))
    await ensure()
    expect(readFileSync(join(dir, 'nats.log'), 'utf8')).to.contain('Stream create failed')
    expect((await names()).length).to.equal(6)
  })

  it('are refused with another shard count when an item was stored, even if it is purged', async () => {
    await ensure()
    await store('items.1.mixed')
    await manager.streams.purge('INBOX_1')
    for (const shards of [1, 4]) {
      expect(await refusal(ensure({ shards }))).to.contain('made for 2 shards and INBOX_1 is not empty')
    }
    expect((await names()).length).to.equal(6)
  })

  const edits: [string, Partial<StreamUpdateConfig>, string][] = [
    ['age', { max_age: nanos(60_000), duplicate_window: nanos(30_000) }, 'max_age'],
    ['count', { max_msgs: 1_000 }, 'max_msgs'],
    ['count a subject', { max_msgs_per_subject: 1 }, 'max_msgs_per_subject'],
    ['eviction', { discard: DiscardPolicy.Old }, 'discard'],
    ['subjects', { subjects: ['items.0.>', 'other'] }, 'subjects'],
    ['a short memory of ids', { duplicate_window: nanos(1_000) }, 'duplicate_window'],
    ['size', { max_bytes: -1 }, 'max_bytes'],
    ['no answers', { no_ack: true }, 'no_ack'],
  ]
  for (const [what, edit, setting] of edits) {
    it(`are refused when edited to lose data: ${what}`, async () => {
      await ensure()
      await manager.streams.update('INBOX_0', edit)
      expect(await refusal(ensure())).to.match(new RegExp(`^stream INBOX_0: ${setting} is .*must be `))
    })
  }

  it('are refused when somebody else made them otherwise', async () => {
    await ensure()
    for (const [name, changes] of [
      ['JOURNAL_0', { storage: StorageType.Memory }],
      ['JOURNAL_1', { retention: RetentionPolicy.Workqueue }],
    ] as const) {
      await manager.streams.delete(name)
      await manager.streams.add({
        name,
        subjects: [`journal.${name.at(-1)}`],
        max_bytes: MEGABYTE,
        ...changes,
      })
    }
    expect(await refusal(ensure())).to.contain('stream JOURNAL_0: storage is "memory"')
    await manager.streams.delete('JOURNAL_0')
    const whole = streamConfig({
      name: journalName(0),
      maxBytes: MEGABYTE,
      replicas: 1,
      createdAt: Date.now(),
      metadata: {},
    })
    await manager.streams.add(whole)
    expect(await refusal(ensure())).to.contain('stream JOURNAL_1: retention is "workqueue"')
  })

  it('need more replicas than they have: refused', async () => {
    await ensure()
    expect(await refusal(ensure({ replicas: 3 }))).to.contain('num_replicas is 1, must be 3')
  })

  it('are made smaller until they fit the store', async () => {
    const server = await ownNats({ accounts: [] })
    const other = await connectTo(server.url)
    const api = await other.connection.nats.jetstreamManager()
    // The embedded broker offers 1 TiB.
    const ballast = { name: 'BALLAST', subjects: ['b'], max_bytes: 1024 ** 4 - 2_000 * MEGABYTE }
    await api.streams.add({ ...ballast, storage: StorageType.File })
    await ensureStreams(other.connection, {
      clock: systemClock(),
      shards: 2,
      replicas: 1,
      storeBytes: 16_000 * MEGABYTE,
    })
    let sum = 0
    for await (const { config } of api.streams.list()) if (config.name !== 'BALLAST') sum += config.max_bytes
    expect(sum).to.be.within(700 * MEGABYTE, 2_000 * MEGABYTE)
    const tooMany = ensureStreams(other.connection, {
      clock: systemClock(),
      shards: 9,
      replicas: 1,
      prefix: 'X_',
    })
    expect(await refusal(tooMany)).to.contain('no room for the logs of 9 shards')
    await other.connection.close()
    await server.stop()
  })

  it('are waited for while the broker does not answer', async () => {
    const server = await ownNats({ accounts: [] })
    const { connection } = await connectTo(server.url)
    const system = systemClock()
    let waits = 0
    const clock = {
      ...system,
      after: (ms: number, task: () => void) => {
        waits++
        server.kill('SIGCONT')
        return system.after(ms, task)
      },
    }
    server.kill('SIGSTOP')
    await ensureStreams(connection, { clock, shards: 1, replicas: 1, storeBytes: STORE_BYTES_PER_SHARD })
    expect(waits).to.be.above(0)
    await connection.close()
    await server.stop()
  })

  it('are made of one size by nodes that start together on a small store', async () => {
    const server = await ownNats({ accounts: [] })
    const nodes = await Promise.all(Array.from({ length: 5 }, () => connectTo(server.url)))
    const api = await nodes[0]!.connection.nats.jetstreamManager()
    const ballast = { name: 'BALLAST', subjects: ['b'], max_bytes: 1024 ** 4 - 2_000 * MEGABYTE }
    await api.streams.add({ ...ballast, storage: StorageType.File })
    const options = { clock: systemClock(), shards: 4, replicas: 1, storeBytes: 64_000 * MEGABYTE }
    await Promise.all(nodes.map((node) => ensureStreams(node.connection, options)))
    const sizes = new Map<string, number>()
    for await (const { config } of api.streams.list()) sizes.set(config.name, config.max_bytes)
    const inbox = sizes.get('INBOX_0')!
    for (const shard of [0, 1, 2, 3])
      for (const [name, bytes] of [
        [`INBOX_${shard}`, inbox],
        [`JOURNAL_${shard}`, inbox + 32 * MEGABYTE],
        [`ARCHIVE_${shard}`, 32 * MEGABYTE],
      ] as const)
        expect(sizes.get(name), name).to.equal(bytes)
    await Promise.all(nodes.map((node) => node.connection.close()))
    await server.stop()
  })
})

describe('faults of a stream', () => {
  const plan = {
    maxBytes: MEGABYTE,
    replicas: 3,
    createdAt: 1.79e12,
    metadata: {},
  }
  const right = streamConfig({ name: inboxName(0), ...plan }) as StreamConfig
  const demands = { name: inboxName(0), replicas: 3 }
  const faults = (changes: object) => streamFaults({ ...right, ...changes } as ReportedConfig, demands)

  it('are none for what we make, with more replicas and a longer window too', () => {
    expect(faults({})).to.deep.equal([])
    expect(faults({ num_replicas: 5, duplicate_window: nanos(60_000) })).to.deep.equal([])
  })

  it('name each setting that loses data', () => {
    const cases: [object, string][] = [
      [{ mirror: { name: 'M' } }, 'mirror'],
      [{ sources: [{ name: 'S' }] }, 'sources'],
      [{ persist_mode: 'async' }, 'persist_mode'],
      [{ retention: RetentionPolicy.Interest }, 'retention'],
      [{ discard_new_per_subject: true }, 'discard_new_per_subject'],
      [{ sealed: true }, 'sealed'],
      [{ deny_purge: true }, 'deny_purge'],
      [{ first_seq: 1 }, 'first_seq'],
      [{ max_msg_size: 1_000 }, 'max_msg_size'],
      [{ num_replicas: 1 }, 'num_replicas'],
      [{ subject_transform: { src: 'a', dest: 'b' } }, 'subject_transform'],
    ]
    for (const [changes, setting] of cases) {
      expect(faults(changes), setting).to.have.length(1)
      expect(faults(changes)[0]).to.match(new RegExp(`^${setting} is .*, must be `))
    }
  })
})
