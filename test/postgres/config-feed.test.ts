import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createBufferCache } from '../../internal/buffers/cache.ts'
import { createBufferRows } from '../../internal/postgres/buffers.ts'
import {
  type ConfigFeed,
  type ConfigListener,
  createConfigFeed,
} from '../../internal/postgres/config-feed.ts'
import { createDeletedBuffers } from '../../internal/postgres/deleted-buffers.ts'
import { type AccountsNode, accountsNode, bufferBody, principal } from '../support/accounts.ts'
import { eventually } from '../support/eventually.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

/** Longer than any test: what arrives did not come by a poll. */
const NEVER_MS = 3_600_000
const acme = principal('acme')

describe('the change feed', () => {
  let writer: AccountsNode
  let reader: AccountsNode
  let feed: ConfigFeed

  beforeEach(async () => {
    writer = await accountsNode()
    reader = await accountsNode(writer.url)
    await writer.customers.ensure('acme')
    await writer.projects.create(acme, { projectId: 'p', name: 'x' })
    await writer.buffers.create(acme, bufferBody('b', 'p'))
  })
  afterEach(async () => {
    await feed.stop()
    await Promise.all([writer.close(), reader.close()])
  })

  async function follow(pollMs: number, more: ConfigListener[] = []): Promise<void> {
    const { db, clock, bufferCache, keyCache, errors } = reader
    feed = createConfigFeed({
      db,
      clock,
      pollMs,
      onError: (error) => errors.push(error),
      listeners: [{ entity: 'buffer', ...bufferCache }, { entity: 'api_key', ...keyCache }, ...more],
    })
    await feed.start()
  }

  const seen = (bufferId: string) => reader.bufferCache.peekById(bufferId)

  it('brings what another node commits, by notification alone', async () => {
    await follow(NEVER_MS)
    await reader.bufferCache.loadById('b')
    await writer.buffers.update(acme, 'b', { batch: { maxItems: 9 } })
    await eventually(() => seen('b')?.buffer.batch.maxItems === 9)
    // As the auto-pause writes it: in SQL, and knowing nothing of versions.
    await writer.db`UPDATE buffers SET enabled = false, consecutive_dlq_count = 3 WHERE buffer_id = 'b'`
    await eventually(() => seen('b')?.buffer.enabled === false)
    const { uid } = seen('b')!
    await writer.buffers.remove(acme, 'b')
    await eventually(() => reader.bufferCache.peek(uid) === undefined)
    expect(await reader.bufferCache.load(uid)).to.include({ deleted: true })
    expect(seen('b')).to.equal(undefined)
  })

  it('ends a key that was revoked on another node', async () => {
    await follow(NEVER_MS)
    const { keyId, secret } = await writer.apiKeys.create(acme, { name: 'x' })
    expect(await reader.keyCache.authenticate(secret)).to.include({ keyId })
    await writer.apiKeys.revoke(acme, keyId)
    await eventually(async () => (await reader.keyCache.authenticate(secret)) === undefined)
  })

  it('says nothing of a counter or of a rolled back change', async () => {
    await follow(NEVER_MS)
    await writer.db`UPDATE buffers SET consecutive_dlq_count = 1 WHERE buffer_id = 'b'`
    await writer.db
      .begin(async (transaction) => {
        await transaction`UPDATE buffers SET enabled = false WHERE buffer_id = 'b'`
        throw new Error('rolled back')
      })
      .catch(() => {})
    expect([...(await writer.db`SELECT version FROM config_version`)]).to.deep.equal([{ version: 0 }])
    expect([...(await writer.db`SELECT 1 FROM config_changes`)]).to.deep.equal([])
  })

  it('finds by its poll what no notification told', async () => {
    await silence(writer)
    await follow(20)
    await reader.bufferCache.loadById('b')
    await writer.buffers.update(acme, 'b', { name: 'silent' })
    await eventually(() => seen('b')?.buffer.name === 'silent')
  })

  it('misses nothing while its connection is cut', async () => {
    await follow(NEVER_MS)
    await reader.bufferCache.loadById('b')
    for (let round = 0; round < 5; round++) {
      const cut = writer.db`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND query ILIKE 'listen%'`
      await Promise.all([cut, writer.buffers.update(acme, 'b', { name: `round ${round}` })])
      await eventually(() => seen('b')?.buffer.name === `round ${round}`)
    }
  })

  it('hands over every one of many changes that overlap', async () => {
    await follow(NEVER_MS)
    const ids = Array.from({ length: 12 }, (_, n) => `many-${n}`)
    for (const id of ids) await writer.buffers.create(acme, bufferBody(id, 'p'))
    await Promise.all(ids.map((id) => reader.bufferCache.loadById(id)))
    const rounds = ids.flatMap((id) =>
      [1, 2, 3].map((maxItems) => writer.buffers.update(acme, id, { batch: { maxItems } })),
    )
    await Promise.all(rounds)
    const stored = await writer.buffers.list(acme)
    await eventually(() => {
      for (const id of ids) {
        expect(seen(id)?.buffer).to.deep.equal(stored.find(({ bufferId }) => bufferId === id))
      }
    })
  })

  it('asks a listener again that failed', async () => {
    const asked: string[][] = []
    const failing: ConfigListener = {
      entity: 'buffer',
      reset: () => {},
      changed: async (ids) => {
        asked.push([...ids])
        if (asked.length < 3) throw new Error('not yet')
      },
    }
    await follow(20, [failing])
    await writer.buffers.update(acme, 'b', { name: 'x' })
    await eventually(() => asked.length === 3)
    expect(new Set(asked.map(String)).size).to.equal(1)
    expect(reader.errors.map(String)).to.deep.equal(['Error: not yet', 'Error: not yet'])
  })

  it('reads everything again when the database went back to an earlier state', async () => {
    await writer.buffers.update(acme, 'b', { name: 'later' })
    await follow(20)
    await reader.bufferCache.loadById('b')
    await writer.db.begin(async (transaction) => {
      await transaction`ALTER TABLE buffers DISABLE TRIGGER USER`
      await transaction`
        UPDATE buffers SET version = 1, config = jsonb_set(config, '{name}', '"earlier"') WHERE buffer_id = 'b'`
      await transaction`ALTER TABLE buffers ENABLE TRIGGER USER`
      await transaction`UPDATE config_version SET version = 0`
      await transaction`TRUNCATE config_changes`
    })
    await eventually(() => seen('b')?.buffer.name === 'earlier')
    await writer.buffers.update(acme, 'b', { name: 'and on' })
    await eventually(() => seen('b')?.buffer.name === 'and on')
  })

  describe('of a buffer whose row is removed', () => {
    /** Past its grace, and with all that a removal does. */
    async function removeDeleted(): Promise<void> {
      const rows = createDeletedBuffers(writer.db, { shards: 1, graceMs: 0 })
      const { before, uids } = await rows.pending(0)
      expect(uids).to.have.length(1)
      await rows.report({ shard: 0, epoch: 1 }, { before, position: 1, held: [] })
      await rows.remove()
    }

    /** As shards that have items of every buffer. */
    function holdAll(): void {
      reader.bufferCache.onChange(
        () => {},
        () => true,
      )
    }

    /** Another buffer has the id now. */
    async function takeAnew(): Promise<string> {
      await writer.buffers.create(acme, bufferBody('b', 'p', { name: 'anew' }))
      return writer.bufferCache.peekById('b')!.uid
    }

    it('misses no deletion whose entry was cut before it could be read', async () => {
      await writer.buffers.create(acme, bufferBody('other', 'p'))
      const proxy = await TcpProxy.to(Number(new URL(writer.url).port))
      await reader.close()
      reader = await accountsNode(proxy.through(writer.url))
      await follow(20)
      holdAll()
      const old = await reader.bufferCache.loadById('b')
      const { secret, keyId } = await writer.apiKeys.create(acme, { name: 'x' })
      await reader.keyCache.authenticate(secret)
      proxy.blackhole()
      await writer.buffers.remove(acme, 'b')
      await removeDeleted()
      await writer.apiKeys.revoke(acme, keyId)
      await writer.buffers.update(acme, 'other', { name: 'a later change' })
      proxy.reset()
      proxy.heal()
      await eventually(() => reader.bufferCache.peek(old!.uid)?.removed === true)
      expect(await reader.bufferCache.loadById('b')).to.equal(undefined)
      expect(await reader.keyCache.authenticate(secret)).to.equal(undefined)
      const uid = await takeAnew()
      expect((await reader.bufferCache.loadById('b'))?.uid).to.equal(uid)
      await proxy.close()
    })

    it('drops it, though it could not be read again before it was gone', async () => {
      const { clock, db } = reader
      const rows = createBufferRows(db, reader.box)
      let away = false
      reader.bufferCache = createBufferCache({
        clock,
        rows: { ...rows, byUids: (uids) => (away ? Promise.reject(new Error('away')) : rows.byUids(uids)) },
      })
      await follow(20)
      holdAll()
      const old = await reader.bufferCache.loadById('b')
      away = true
      await writer.buffers.remove(acme, 'b')
      await eventually(() => reader.errors.length > 0)
      expect(seen('b')).to.equal(undefined)
      await removeDeleted()
      const uid = await takeAnew()
      away = false
      await eventually(() => reader.bufferCache.peek(old!.uid)?.removed === true)
      expect((await reader.bufferCache.loadById('b'))?.uid).to.equal(uid)
    })

    it('reads nothing else again in a node that knew of the deletion', async () => {
      const told: string[] = []
      const listener: ConfigListener = {
        entity: 'buffer',
        reset: () => void told.push('everything'),
        changed: (ids) => void told.push(...ids),
      }
      await writer.buffers.create(acme, bufferBody('c', 'p'))
      const uids = ['b', 'c'].map((id) => writer.bufferCache.peekById(id)!.uid)
      await follow(20, [listener])
      await writer.buffers.remove(acme, 'b')
      await eventually(() => told.length === 1)
      await removeDeleted()
      await writer.buffers.update(acme, 'c', { name: 'later' })
      await eventually(() => told.length > 1)
      expect(told).to.deep.equal(uids)
    })
  })

  describe('of an API key whose row is removed', () => {
    /** By as many later revocations as are kept. */
    async function removeRevoked(): Promise<void> {
      await writer.db`
        INSERT INTO api_keys (key_id, customer_id, name, hash, key_prefix, role)
        SELECT 'later-' || n, 'acme', 'later', sha256(n::text::bytea), 'svk_0000', 'owner' FROM generate_series(1, 100) n`
      await writer.db`UPDATE api_keys SET revoked_at = clock_timestamp() WHERE name = 'later'`
      await writer.apiKeys.create(acme, { name: 'next' })
    }
    const entries = (keyId: string) =>
      writer.db`SELECT 1 FROM config_changes WHERE id = ${keyId} UNION ALL SELECT 1 FROM api_keys WHERE key_id = ${keyId}`

    it('misses no revocation whose entry was cut before it could be read', async () => {
      const proxy = await TcpProxy.to(Number(new URL(writer.url).port))
      await reader.close()
      reader = await accountsNode(proxy.through(writer.url))
      await follow(20)
      const { secret, keyId } = await writer.apiKeys.create(acme, { name: 'x' })
      expect(await reader.keyCache.authenticate(secret)).to.include({ keyId })
      proxy.blackhole()
      await writer.apiKeys.revoke(acme, keyId)
      await removeRevoked()
      expect([...(await entries(keyId))]).to.deep.equal([])
      expect(reader.keyCache.peek(secret), 'while it is cut off').to.include({ keyId })
      proxy.reset()
      proxy.heal()
      await eventually(() => reader.keyCache.peek(secret) === undefined)
      expect(await reader.keyCache.authenticate(secret)).to.equal(undefined)
      await proxy.close()
    })

    it('reads nothing again in a node that knew of the revocation', async () => {
      const told: string[] = []
      const listener: ConfigListener = {
        entity: 'api_key',
        reset: () => void told.push('everything'),
        changed: (ids) => void told.push(...ids.filter((id) => !id.startsWith('later-'))),
      }
      const { keyId } = await writer.apiKeys.create(acme, { name: 'x' })
      await follow(20, [listener])
      await writer.apiKeys.revoke(acme, keyId)
      await eventually(() => told.length === 1)
      await removeRevoked()
      expect([...(await entries(keyId))]).to.deep.equal([])
      const last = await writer.apiKeys.create(acme, { name: 'last' })
      await writer.apiKeys.revoke(acme, last.keyId)
      await eventually(() => told.length > 1)
      expect(told).to.deep.equal([keyId, last.keyId])
    })

    it('ends one that goes at once, because the clock of the database was set back', async () => {
      await follow(NEVER_MS)
      const { secret, keyId } = await writer.apiKeys.create(acme, { name: 'x' })
      expect(await reader.keyCache.authenticate(secret)).to.include({ keyId })
      await writer.db`
        INSERT INTO api_keys (key_id, customer_id, name, hash, key_prefix, role, revoked_at)
        SELECT 'ahead-' || n, 'acme', 'x', sha256(n::text::bytea), 'svk_0000', 'owner', now() + interval '1 day'
        FROM generate_series(1, 100) n`
      await writer.apiKeys.revoke(acme, keyId)
      expect([...(await entries(keyId))]).to.deep.equal([])
      await eventually(async () => (await reader.keyCache.authenticate(secret)) === undefined)
    })

    it('ends one that was active when somebody deleted its row by hand', async () => {
      await follow(NEVER_MS)
      const { secret, keyId } = await writer.apiKeys.create(acme, { name: 'x' })
      expect(await reader.keyCache.authenticate(secret)).to.include({ keyId })
      await writer.db`DELETE FROM api_keys WHERE key_id = ${keyId}`
      await eventually(async () => (await reader.keyCache.authenticate(secret)) === undefined)
    })
  })

  it('says that it has caught up only with what was read and told', async () => {
    const events: string[] = []
    let heard = 0
    const listener: ConfigListener = {
      entity: 'buffer',
      reset: () => {},
      changed: () => void events.push('changed'),
      caughtUp: ({ monotonic }) => {
        expect(monotonic).to.be.at.least(heard)
        heard = monotonic
        if (events.at(-1) !== 'caught up') events.push('caught up')
      },
    }
    await silence(writer)
    await follow(20, [listener])
    await eventually(() => events.length === 1)
    await writer.buffers.update(acme, 'b', { name: 'x' })
    const after = reader.clock.monotonic()
    await eventually(() => heard > after)
    expect(events).to.deep.equal(['caught up', 'changed', 'caught up'])
    await writer.db`ALTER TABLE config_version RENAME TO away`
    await eventually(() => reader.errors.length > 0)
    const last = heard
    await eventually(() => reader.errors.length > 2)
    expect(heard).to.equal(last)
  })

  it('makes no transaction wait for another that changed configuration and goes on', async () => {
    await follow(NEVER_MS)
    await writer.buffers.create(acme, bufferBody('c', 'p'))
    await writer.db.begin(async (transaction) => {
      await transaction`UPDATE buffers SET enabled = false WHERE buffer_id = 'b'`
      // Would run into the lock time-out if the counter were held before the commit.
      await reader.db`UPDATE buffers SET enabled = false WHERE buffer_id = 'c'`
    })
    const rows = await writer.db`SELECT version FROM config_changes ORDER BY version`
    expect(rows.map(({ version }) => version)).to.deep.equal([1, 2])
  })
})

/** Changes are still counted, but nobody is told. */
async function silence({ db }: AccountsNode): Promise<void> {
  await db`
    CREATE OR REPLACE FUNCTION publish_config_change(changed_entity text, changed_id text) RETURNS void
    LANGUAGE sql AS $$
      WITH next AS (UPDATE config_version SET version = version + 1 RETURNING version)
      INSERT INTO config_changes (entity, id, version) SELECT changed_entity, changed_id, version FROM next
        ON CONFLICT (entity, id) DO UPDATE SET version = excluded.version
    $$`
}
