/** Messages at which a fault strikes, by what they mean to the service. */
import { decodeCommit } from '../../internal/shard/journal/codec.ts'
import type { JournalRecord } from '../../internal/shard/journal/records.ts'
import type { Which } from '../support/nats-proxy.ts'

/** A journal commit that holds a record of this type. */
export function committing(type: JournalRecord['type']): Which {
  return ({ subject, payload }) =>
    subject.startsWith('journal.') && decodeCommit(payload).records.some((record) => record.type === type)
}

/** A pack on its way into an inbox. */
export const packing: Which = ({ subject }) => subject.startsWith('items.')

/** An owner's verdict on its way to an ingress. */
export const judging: Which = ({ subject }) => /^ingress\.[^.]+\.verdict$/.test(subject)

/** A part of a snapshot on its way into an archive, or its end. */
export function archiving(what: 'part' | 'end'): Which {
  const subject = what === 'end' ? /^archive\.\d+\.snapshot\..*\.end$/ : /^archive\.\d+\.snapshot\..*\.\d+$/
  return (frame) => subject.test(frame.subject)
}

/** A purge of an inbox or of a journal, or of older snapshots in an archive. */
export function purging(log: 'INBOX' | 'JOURNAL' | 'ARCHIVE'): Which {
  return ({ subject }) => subject.startsWith(`$JS.API.STREAM.PURGE.${log}_`)
}

/** The `count`th of these messages from now on. */
export function nth(count: number, which: Which = () => true): Which {
  let left = count
  return (frame) => which(frame) && --left <= 0
}
