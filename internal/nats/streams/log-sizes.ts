/** How the store of a broker is divided among the logs (docs/architecture/protocol.md, "Logs"). Pure. */

const MEGABYTE = 1024 * 1024
/** A journal holds what housekeeping carries over from its inbox, and its own records. */
const JOURNAL_SURPLUS_BYTES = 32 * MEGABYTE
/** An archive holds three snapshots at least; what they take grows with the inbox. */
const LEAST_ARCHIVE_BYTES = 32 * MEGABYTE
const INBOX_OF_ARCHIVE = 16
/** Less is no buffer. */
const LEAST_INBOX_BYTES = 16 * MEGABYTE
/** Of the broker's store; the rest is for what a file store needs beyond its messages. */
const USABLE_SHARE = 0.9

/** `max_bytes` of the three logs of a shard. */
export interface LogSizes {
  readonly inbox: number
  readonly journal: number
  readonly archive: number
}

export type LogKind = keyof LogSizes

/** Such that the sum over all shards fits `storeBytes`; undefined when the store is too small for any useful size. */
export function divideStore(storeBytes: number, shards: number): LogSizes | undefined {
  const perShard = Math.floor((storeBytes * USABLE_SHARE) / shards)
  const logs = perShard - JOURNAL_SURPLUS_BYTES
  const inbox = Math.floor(
    Math.min((logs - LEAST_ARCHIVE_BYTES) / 2, (logs * INBOX_OF_ARCHIVE) / (2 * INBOX_OF_ARCHIVE + 1)),
  )
  return inbox < LEAST_INBOX_BYTES ? undefined : sizesFor(inbox)
}

/** All logs beside an inbox of so many bytes. */
export function sizesFor(inbox: number): LogSizes {
  const archive = Math.max(LEAST_ARCHIVE_BYTES, Math.ceil(inbox / INBOX_OF_ARCHIVE))
  return { inbox, journal: inbox + JOURNAL_SURPLUS_BYTES, archive }
}

/** The largest inbox for which a log of so many bytes is large enough. */
export function inboxBeside(kind: LogKind, bytes: number): number {
  switch (kind) {
    case 'inbox':
      return bytes
    case 'journal':
      return bytes - JOURNAL_SURPLUS_BYTES
    case 'archive':
      return bytes * INBOX_OF_ARCHIVE
  }
}
