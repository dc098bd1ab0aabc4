/**
 * The change feed of cached configuration (docs/architecture/protocol.md, "Cached configuration";
 * `migrations/002-config-feed.sql`): what other nodes commit reaches this node's caches by NOTIFY within
 * milliseconds, and by a poll each second when a notification was lost.
 *
 * Invariant: `position` is the highest version up to which every change was handed to the listeners; nothing
 * between two positions is skipped, whatever happens to the connections. A listener that fails is asked
 * again with the next poll.
 */

import type { Clock } from '../runtime/clock.ts'
import { withDeadline } from '../runtime/deadline.ts'
import type { Database } from './connection.ts'

export interface ConfigListener {
  /** Which rows: `buffer` (ids are uids), `api_key` (ids are keyIds) or `identity` (ids are customerIds). */
  readonly entity: 'buffer' | 'api_key' | 'identity'
  /** A rejection keeps the ids for the next poll. */
  changed(ids: readonly string[]): void | Promise<void>
  /** Anything may have changed: the database was restored to an earlier state. */
  reset(): void | Promise<void>
}

export interface ConfigFeedOptions {
  db: Database
  clock: Clock
  listeners: readonly ConfigListener[]
  /** Polls and listeners that failed; the feed goes on. */
  onError: (error: unknown) => void
  /** Default 1,000. */
  pollMs?: number
}

export interface ConfigFeed {
  /** Resolves when the feed listens and knows its position; rejects when the database cannot be reached. */
  start(): Promise<void>
  stop(): Promise<void>
}

interface Change {
  entity: string
  id: string
  version: number
}

const CHANNEL = 'penstock_config'
/** A question that hangs must not silence the feed. */
const DEADLINE_MS = 3_000
/** Changes read at once. */
const PAGE = 1_000

export function createConfigFeed(options: ConfigFeedOptions): ConfigFeed {
  const { db, clock, listeners, onError, pollMs = 1_000 } = options
  const owed = new Map(listeners.map((listener) => [listener, { ids: new Set<string>(), all: false }]))
  let position = 0
  let stopped = false
  let cancelPoll = (): void => {}
  let unlisten: () => Promise<void> = async () => {}
  let catchingUp: Promise<void> | null = null
  let askedAgain = false

  function take(change: Change): void {
    if (change.version <= position) return
    position = change.version
    for (const [listener, debt] of owed) if (listener.entity === change.entity) debt.ids.add(change.id)
  }

  /** Numbers come in their order: the next one needs no question to the database, any other does. */
  function notified(payload: string): void {
    const change = JSON.parse(payload) as Change
    if (change.version > position + 1) return void catchUp()
    take(change)
    void settle()
  }

  /** One at a time; who asks while one runs gets another round, for that one may have read too early. */
  function catchUp(): Promise<void> {
    askedAgain = catchingUp !== null
    catchingUp ??= catchUpWhileAsked().finally(() => {
      catchingUp = null
    })
    return catchingUp
  }

  async function catchUpWhileAsked(): Promise<void> {
    do {
      askedAgain = false
      await withDeadline(clock, DEADLINE_MS, readChanges()).catch(onError)
      void settle()
    } while (askedAgain)
  }

  async function readChanges(): Promise<void> {
    const before = position
    const current = await currentVersion(db)
    if (current < before) return restored(current)
    while (position < current) {
      const changes = await changesAfter(db, position)
      // The feed's own table was cut: what is missing cannot be told any more.
      if (changes.length === 0 && position < current) return restored(current)
      for (const change of changes) take(change)
    }
  }

  function restored(current: number): void {
    position = current
    for (const debt of owed.values()) debt.all = true
  }

  async function settle(): Promise<void> {
    await Promise.all(listeners.map((listener) => settleOne(listener)))
  }

  async function settleOne(listener: ConfigListener): Promise<void> {
    const debt = owed.get(listener)
    if (debt === undefined || (debt.ids.size === 0 && !debt.all)) return
    const due = { ids: [...debt.ids], all: debt.all }
    debt.ids.clear()
    debt.all = false
    try {
      await (due.all ? listener.reset() : listener.changed(due.ids))
    } catch (error) {
      for (const id of due.ids) debt.ids.add(id)
      debt.all ||= due.all
      onError(error)
    }
  }

  function poll(): void {
    cancelPoll = clock.after(pollMs, () => void catchUp().finally(() => stopped || poll()))
  }

  return {
    async start() {
      // Known before anything can be cached from now on: a change from here on is not missed.
      position = await currentVersion(db)
      // Also after each reconnection: what was announced meanwhile is read.
      const listening = await db.listen(CHANNEL, notified, () => void catchUp())
      unlisten = listening.unlisten
      poll()
    },
    async stop() {
      stopped = true
      cancelPoll()
      await unlisten().catch(onError)
      await catchingUp
    },
  }
}

async function currentVersion(db: Database): Promise<number> {
  const [row] = await db<{ version: number }[]>`SELECT version FROM config_version`
  if (row === undefined) throw new Error('config_version has no row: the database was not migrated')
  return row.version
}

/** In their order. The latest change of each row only, so versions may be missing in between. */
async function changesAfter(db: Database, position: number): Promise<Change[]> {
  return await db<Change[]>`
    SELECT entity, id, version FROM config_changes
    WHERE version > ${position} ORDER BY version LIMIT ${PAGE}`
}
