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

/** What of a snapshot is on its way into an archive: its first part, another part, or its end. */
export function archiving(what: 'first part' | 'other part' | 'end'): Which {
  const last = { 'first part': '0', 'other part': '[1-9]\\d*', end: 'end' }[what]
  const subject = new RegExp(`^archive\\.\\d+\\.snapshot\\..*\\.${last}$`)
  return (frame) => subject.test(frame.subject)
}

/** A purge of an inbox or of a journal; `above`: of what stands above this sequence, too. */
export function purging(stream: string, above = 0): Which {
  return ({ subject, payload }) =>
    subject.startsWith(`$JS.API.STREAM.PURGE.${stream}`) && JSON.parse(payload.toString()).seq > above
}

/** The removal of a snapshot behind which a complete one stands: from now on, the first end has to come before it. */
export function removingOlder(): Which {
  const complete = new Map<string, number>()
  return ({ subject, payload }) => {
    const [, stored, end] = /^archive\.(\d+)\.snapshot\.(\d+)\..*\.end$/.exec(subject) ?? []
    if (stored !== undefined) complete.set(stored, Number(end))
    if (!subject.startsWith('$JS.API.STREAM.PURGE.ARCHIVE_')) return false
    const { filter } = JSON.parse(payload.toString()) as { filter: string }
    const [, archive, older] = /^archive\.(\d+)\.snapshot\.(\d+)\./.exec(filter) ?? []
    return archive !== undefined && Number(older) < (complete.get(archive) ?? 0)
  }
}

/** The `count`th of these messages from now on. */
export function nth(count: number, which: Which = () => true): Which {
  let left = count
  return (frame) => which(frame) && --left <= 0
}
