/** A log in memory that answers at once. */
import type { Log } from '../../internal/shard/broker.ts'
import type { Stream } from './simulation/streams.ts'

const NOW = 1_000

/** `streamOf`: it may be made anew. `follow` hands over what is there when it begins, and nothing more. */
export function memoryLog(streamOf: () => Stream): Log {
  return {
    append: async (data, { msgId, expectLastSeq }) => streamOf().append(NOW, data, msgId, expectLastSeq),
    state: async () => streamOf().state(),
    get: async (seq) => streamOf().get(seq),
    last: async () => streamOf().messages.at(-1),
    follow(from, handler) {
      const found = streamOf().messages.filter(({ seq }) => seq >= from)
      setImmediate(() => handler(found))
      return { stop: async () => {} }
    },
    async *range(from, to) {
      for (const message of streamOf().messages) if (message.seq >= from && message.seq <= to) yield message
    },
    purgeBelow: async (seq) => streamOf().purgeBelow(seq),
  }
}
