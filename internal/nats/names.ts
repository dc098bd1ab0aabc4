/**
 * Names of the streams and their subjects. The prefix is empty but for tests that share an account; it goes
 * in front of stream names and subjects alike.
 */
export interface LogName {
  stream: string
  /** What the stream stores. */
  subject: string
  /** Where an append without a subject of its own goes. */
  appendTo: string
}

export function inboxName(shard: number, prefix = ''): LogName {
  const root = `${prefix}items.${shard}`
  return { stream: `${prefix}INBOX_${shard}`, subject: `${root}.>`, appendTo: `${root}.mixed` }
}

export function journalName(shard: number, prefix = ''): LogName {
  const subject = `${prefix}journal.${shard}`
  return { stream: `${prefix}JOURNAL_${shard}`, subject, appendTo: subject }
}
