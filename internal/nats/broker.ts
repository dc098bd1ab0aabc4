/** The broker port of shards over one connection (see `internal/shard/broker.ts`). */

import type { Clock } from '../runtime/clock.ts'
import { messageOf } from '../runtime/thrown.ts'
import type { Broker } from '../shard/broker.ts'
import type { Connection } from './connection.ts'
import { Appender } from './log/append.ts'
import { StreamArchive } from './log/archive.ts'
import { StreamLog } from './log/log.ts'
import { archiveName, inboxName, journalName, type LogName } from './names.ts'

type Handler = Parameters<Broker['subscribe']>[1]

export interface BrokerOptions {
  clock: Clock
  /** In front of stream names and of the logs' subjects; core subjects stand as they are. Default empty. */
  prefix?: string
}

/** A broker, and what ends its pending appends with `unknown`; the connection stays the caller's. */
export type NatsBroker = Broker & { close(): void }

export function createBroker(connection: Connection, options: BrokerOptions): NatsBroker {
  const { clock, prefix = '' } = options
  const appender = new Appender(connection, clock)
  const log = (name: LogName) => new StreamLog({ connection, appender, clock, name, prefix })
  const own = new Map<string, Handler>()
  const publish: Broker['publish'] = (subject, data, reply) => {
    // At most once: what cannot be sent now is not kept for later.
    if (connection.connected)
      connection.nats.publish(subject, data, reply === undefined ? undefined : { reply })
  }
  return {
    inbox: remembered((shard) => log(inboxName(shard, prefix))),
    journal: remembered((shard) => log(journalName(shard, prefix))),
    archive: remembered(
      (shard) => new StreamArchive({ connection, appender, name: archiveName(shard, prefix) }),
    ),
    publish,
    tell(subject, data) {
      if (own.has(subject)) queueMicrotask(() => own.get(subject)?.(data, undefined))
      else publish(subject, data)
    },
    subscribe(subject, handler) {
      const guarded = guarding(connection, subject, handler)
      own.set(subject, guarded)
      const end = subscribe(connection, subject, guarded)
      return () => {
        if (own.get(subject) === guarded) own.delete(subject)
        end()
      }
    },
    onReconnect: (listener) => connection.onReconnect(listener),
    close: () => appender.close(),
  }
}

function remembered<Of>(make: (shard: number) => Of): (shard: number) => Of {
  const logs = new Map<number, Of>()
  return (shard) => {
    const log = logs.get(shard) ?? make(shard)
    logs.set(shard, log)
    return log
  }
}

/** What it throws is a warning: thrown further, it would end the client's reading of its socket, or the process. */
function guarding(connection: Connection, subject: string, handler: Handler): Handler {
  return (data, reply) => {
    try {
      handler(data, reply)
    } catch (error) {
      connection.warn(`${subject}: ${messageOf(error)}`)
    }
  }
}

function subscribe(connection: Connection, subject: string, handler: Handler): () => void {
  const subscription = connection.nats.subscribe(subject, {
    callback: (refused, message) => {
      if (refused) connection.warn(`${subject}: ${refused.message}`)
      else handler(Buffer.from(message.data), message.reply || undefined)
    },
  })
  return () => {
    if (!connection.nats.isClosed()) subscription.unsubscribe()
  }
}
