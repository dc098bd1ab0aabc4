/**
 * Names of the streams and their subjects. The prefix is empty but for tests that share an account; it goes
 * in front of stream names and subjects alike.
 */
export interface StreamName {
  stream: string
  /** What the stream stores. */
  subject: string
}

export interface LogName extends StreamName {
  /** Where an append without a subject of its own goes. */
  appendTo: string
}

export interface ArchiveName extends StreamName {
  /** In front of the subjects that callers name, with its dot. */
  root: string
}

export function inboxName(shard: number, prefix = ''): LogName {
  const root = `${prefix}items.${shard}`
  return { stream: `${prefix}INBOX_${shard}`, subject: `${root}.>`, appendTo: `${root}.mixed` }
}

export function journalName(shard: number, prefix = ''): LogName {
  const subject = `${prefix}journal.${shard}`
  return { stream: `${prefix}JOURNAL_${shard}`, subject, appendTo: subject }
}

export function archiveName(shard: number, prefix = ''): ArchiveName {
  const root = `${prefix}archive.${shard}.`
  return { stream: `${prefix}ARCHIVE_${shard}`, subject: `${root}>`, root }
}
