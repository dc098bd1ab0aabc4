/** An archive in memory that answers at once. */
import type { Archive } from '../../internal/shard/broker.ts'
import { ArchiveStream } from './simulation/archive.ts'

const NOW = 1_000

export function memoryArchive(stream = new ArchiveStream({ windowMs: 0 })): Archive {
  return {
    append: async (data, { subject, msgId }) => stream.append(NOW, data, msgId, subject),
    state: async () => stream.state(),
    list: async (filter) => stream.list(filter),
    lastOf: async (subject) => stream.lastOf(subject),
    remove: async (filter) => stream.remove(filter),
  }
}
