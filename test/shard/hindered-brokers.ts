/** The broker of a test, but some of what an owner asks of it comes late, or not at all. */
import type { Archive, Broker, Log, LogState, Reading } from '../../internal/shard/broker.ts'
import { decodeCommit } from '../../internal/shard/journal/codec.ts'
import type { Commit } from '../../internal/shard/journal/records.ts'

/** The same broker, but each commit waits for `before`. */
export function holdingCommits(broker: Broker, before: (commit: Commit) => Promise<void>): Broker {
  const holding = (log: Log) =>
    through(log, {
      append: async (data: Uint8Array, options: Parameters<Log['append']>[1]) => {
        await before(decodeCommit(data))
        return log.append(data, options)
      },
    })
  return through(broker, { journal: (shard: number) => holding(broker.journal(shard)) })
}

/** The same broker, but it tells the end of a journal, which a claim begins with, only after `until`. */
export function holdingClaims(broker: Broker, until: Promise<void>): Broker {
  const held = (log: Log) => through(log, { last: async () => until.then(() => log.last()) })
  return through(broker, { journal: (shard: number) => held(broker.journal(shard)) })
}

/** The same broker, but a claim that has proven itself gets no further before `until`. */
export function holdingProvenClaims(broker: Broker, reached: () => void, until: Promise<void>): Broker {
  const held = (log: Log) =>
    through(log, {
      state: async () => {
        reached()
        await until
        return log.state()
      },
    })
  return through(broker, { inbox: (shard: number) => held(broker.inbox(shard)) })
}

/** The same broker, but nothing of an inbox is read before `until`. */
export function holdingInboxes(broker: Broker, until: Promise<void>): Broker {
  const held = (log: Log) =>
    through(log, {
      follow: (...given: Parameters<Log['follow']>) => {
        let stopped = false
        let reading: Reading | undefined
        void until.then(() => {
          if (!stopped) reading = log.follow(...given)
        })
        return {
          stop: async () => {
            stopped = true
            await reading?.stop()
          },
        }
      },
    })
  return through(broker, { inbox: (shard: number) => held(broker.inbox(shard)) })
}

/** The same broker, but the inbox lacks that message for whoever reads it in order. */
export function lackingMessage(broker: Broker, seq: number): Broker {
  const lacking = (log: Log) =>
    through(log, {
      follow: (from: number, take: Parameters<Log['follow']>[1], onError: Parameters<Log['follow']>[2]) =>
        log.follow(from, (messages) => take(messages.filter((message) => message.seq !== seq)), onError),
    })
  return through(broker, { inbox: (shard: number) => lacking(broker.inbox(shard)) })
}

/** The same broker, but its journals do not answer those who read while `isSilent`. `reconnect`: as after an outage. */
export function silentJournals(
  broker: Broker,
  isSilent: () => boolean,
): { broker: Broker; reconnect: () => void } {
  const asking =
    <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      isSilent() ? Promise.reject(new Error('nobody answers')) : ask(...args)
  return reconnecting(broker, (log) => ({
    state: asking(() => log.state()),
    last: asking(() => log.last()),
    get: asking((seq: number) => log.get(seq)),
  }))
}

/** The same broker, but a server that is behind answers for its journals while `behind` says what that one has. */
export function staleJournals(
  broker: Broker,
  behind: () => LogState | null,
): { broker: Broker; reconnect: () => void } {
  return reconnecting(broker, (log) => ({ state: async () => behind() ?? log.state() }))
}

/**
 * The same broker; while `isCut` no commit reaches a journal. Whoever asks where a journal ends is told after `look`.
 * `reconnect`: as after an outage.
 */
export function cutJournals(
  broker: Broker,
  isCut: () => boolean,
  look: () => Promise<void>,
): { broker: Broker; reconnect: () => void } {
  return reconnecting(broker, (log) => ({
    append: async (...given: Parameters<Log['append']>) =>
      isCut() ? { kind: 'unknown', error: 'no answer' } : log.append(...given),
    state: () => look().then(() => log.state()),
  }))
}

/** The same broker, but who asks first where a journal ends, after a look at the inbox, is told only after `until`. */
export function holdingBehindLooks(broker: Broker, looked: () => void, until: Promise<void>): Broker {
  let hasLooked = false
  let holds = true
  const inbox = (log: Log) =>
    through(log, {
      state: () => {
        hasLooked = true
        return log.state()
      },
    })
  const journal = (log: Log) =>
    through(log, {
      state: async () => {
        if (hasLooked && holds) {
          holds = false
          looked()
          await until
        }
        return log.state()
      },
    })
  return through(broker, {
    inbox: (shard: number) => inbox(broker.inbox(shard)),
    journal: (shard: number) => journal(broker.journal(shard)),
  })
}

/** The same broker with other methods of its journals. `reconnect`: as after an outage. */
function reconnecting(
  broker: Broker,
  methods: (journal: Log) => Record<string, unknown>,
): { broker: Broker; reconnect: () => void } {
  const listeners = new Set<() => void>()
  return {
    broker: through(broker, {
      journal: (shard: number) => through(broker.journal(shard), methods(broker.journal(shard))),
      onReconnect(listener: () => void) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }),
    reconnect() {
      for (const listener of listeners) listener()
    },
  }
}

/** The same broker, but the journal of that shard takes nothing while `refuses`. */
export function refusingCommits(broker: Broker, refusing: number, refuses: () => boolean): Broker {
  const full = (log: Log) =>
    through(log, {
      append: async (data: Uint8Array, options: Parameters<Log['append']>[1]) =>
        refuses() ? { kind: 'full' } : log.append(data, options),
    })
  const journal = (shard: number) =>
    shard === refusing ? full(broker.journal(shard)) : broker.journal(shard)
  return through(broker, { journal })
}

/** The same broker; `onGet` is called for each message of an inbox that is read by its sequence. */
export function countingGets(broker: Broker, onGet: (seq: number) => void): Broker {
  const counted = (log: Log) =>
    through(log, {
      get: (seq: number) => {
        onGet(seq)
        return log.get(seq)
      },
    })
  return through(broker, { inbox: (shard: number) => counted(broker.inbox(shard)) })
}

/** The same broker, but messages of whoever has it get lost while `muted`; streams are none of them. */
export function muting(broker: Broker, muted: () => boolean): Broker {
  const publish = (...given: Parameters<Broker['publish']>) => {
    if (!muted()) broker.publish(...given)
  }
  return through(broker, { publish })
}

/** The same broker, but no snapshot gets its end in an archive, and nobody answers. */
export function losingEnds(broker: Broker): Broker {
  const losing = (archive: Archive) =>
    through(archive, {
      append: async (data: Uint8Array, options: Parameters<Archive['append']>[1]) =>
        options.subject.endsWith('.end')
          ? { kind: 'unknown', error: 'no answer' }
          : archive.append(data, options),
    })
  return through(broker, { archive: (shard: number) => losing(broker.archive(shard)) })
}

/** `target` but for these methods; its own run on itself. */
function through<T extends object>(target: T, methods: Record<string, unknown>): T {
  return new Proxy(target, {
    get(_, name) {
      const value = methods[String(name)] ?? Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
