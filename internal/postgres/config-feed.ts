/**
 * The change feed of cached configuration (docs/architecture/protocol.md, "Cached configuration";
 * `migrations/002-config-feed.sql`): what other nodes commit reaches this node's caches by NOTIFY within
 * milliseconds, and by a poll each second when a notification was lost.
 *
 * Invariant: `position` is the highest version up to which every change was handed to the listeners; nothing
 * between two positions is skipped, whatever happens to the connections. Entries of removed rows are cut from the
 * feed: a position below the highest one that was cut may have missed it, and everything is read again. A listener
 * that fails is asked again with the next poll.
 */

import type { Clock } from '../runtime/clock.ts'
import { withDeadline } from '../runtime/deadline.ts'
import { type Moment, momentOf } from '../runtime/moment.ts'
import type { Database } from './connection.ts'

export interface ConfigListener {
  /**
   * Which rows: `buffer` (ids are uids), `api_key` (ids are keyIds), `identity` (ids are customerIds), or `customer`, which
   * was suspended or resumed.
   */
  readonly entity: 'buffer' | 'api_key' | 'identity' | 'customer'
  /** From the call on, nothing is answered from what these rows were. A rejection keeps the ids for the next poll. */
  changed(ids: readonly string[]): void | Promise<void>
  /** Anything may have changed: the database was restored to an earlier state, or changes were missed. As `changed`. */
  reset(): void | Promise<void>
  /** Every change that was committed before `at` was told. Absent: what it remembers has its own age. */
  caughtUp?(at: Moment): void
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

/** What the feed looked like at one moment. */
interface Page {
  /** Of the last change. */
  version: number
  /** The highest version whose entry was cut; 0: none ever was. */
  cut: number
  /** After the position asked for, in their order. The latest change of each row only, so versions may be missing. */
  changes: Change[]
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
      const begun = momentOf(clock)
      const read = await readInTime()
      void settle()
      if (read) tellCaughtUp(begun)
    } while (askedAgain)
  }

  async function readInTime(): Promise<boolean> {
    try {
      await withDeadline(clock, DEADLINE_MS, readChanges())
      return true
    } catch (error) {
      onError(error)
      return false
    }
  }

  async function readChanges(): Promise<void> {
    for (let more = true; more; ) {
      const before = position
      const page = await readPage(db, before)
      if (page.version < before || lacksSome(page, before)) return startOver(page.version)
      for (const change of page.changes) take(change)
      more = page.changes.length === PAGE
    }
  }

  function startOver(version: number): void {
    position = version
    for (const debt of owed.values()) debt.all = true
  }

  /** Those that were told of all that they are owed. */
  function tellCaughtUp(at: Moment): void {
    for (const [listener, debt] of owed) if (debt.ids.size === 0 && !debt.all) listener.caughtUp?.(at)
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
      position = (await readPage(db, Number.MAX_SAFE_INTEGER)).version
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

/** Whether entries above this position are gone: by the mark, or because the last change itself is not there. */
function lacksSome({ version, cut, changes }: Page, position: number): boolean {
  const last = changes.at(-1)?.version ?? position
  return cut > position || (changes.length < PAGE && last < version)
}

/** One statement, so that what was cut and what is left are of one moment. */
async function readPage(db: Database, position: number): Promise<Page> {
  const [page] = await db<Page[]>`
    SELECT version, cut, coalesce((
      SELECT json_agg(c ORDER BY version) FROM (
        SELECT entity, id, version FROM config_changes
        WHERE version > ${position} ORDER BY version LIMIT ${PAGE}) AS c), '[]') AS changes
    FROM config_version`
  if (page === undefined) throw new Error('config_version has no row: the database was not migrated')
  return page
}
