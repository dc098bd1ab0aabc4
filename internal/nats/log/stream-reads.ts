/** Reads of one stream that come from a server that takes itself for its leader. */
import type { LogMessage, LogState } from '../../shard/broker.ts'
import { BrokerApiError, MESSAGE_NOT_FOUND, type StreamApi } from '../streams/stream-api.ts'
import { msgIdOf } from './delivered.ts'

/** The answer to STREAM.INFO. */
export interface StreamInfo {
  config: { max_bytes: number; first_seq?: number }
  /** When it was asked. */
  ts?: string
  state: {
    messages: number
    bytes: number
    first_seq: number
    last_seq: number
    /** How many messages each has; only where subjects were asked for. */
    subjects?: Record<string, number>
  }
  /** Subjects in all; only where subjects were asked for. */
  total?: number
  cluster?: ClusterInfo
}

/** Of a stream with replicas; `replicas`: its servers but the one that answers. */
export interface ClusterInfo {
  leader?: string
  replicas?: readonly { name: string }[]
}

interface StoredMessage {
  message: { seq: number; hdrs?: string; data?: string; time: string }
}

/**
 * A server that is cut off from its peers takes itself for the leader for some 15 s. Then it answers STREAM.INFO with what it had,
 * and names no leader (measured with NATS 2.14: for a minute and more).
 */
export function isFromLeader(cluster: ClusterInfo | undefined): boolean {
  if (cluster === undefined) return true
  const { leader, replicas = [] } = cluster
  return Boolean(leader) && replicas.every(({ name }) => name !== leader)
}

/** `which`: subjects to list as well, from the `offset`th on. Rejects when another server than the leader answers. */
export async function readInfo(
  api: StreamApi,
  which: { subjects_filter?: string; offset?: number } = {},
): Promise<StreamInfo> {
  const info = await api.ask<StreamInfo>('STREAM.INFO', which)
  if (!isFromLeader(info.cluster))
    throw new Error(`stream ${api.stream}: a server answered that is not its leader`)
  return info
}

export function stateOf({ config, state, ts }: StreamInfo): LogState {
  return {
    firstSeq: state.messages === 0 ? state.last_seq + 1 : state.first_seq,
    lastSeq: state.last_seq,
    messages: state.messages,
    bytes: state.bytes,
    maxBytes: config.max_bytes,
    ...(config.first_seq !== undefined && { origin: config.first_seq }),
    ...(ts !== undefined && { at: Date.parse(ts) }),
  }
}

/** One message by its sequence, or the last one under a subject; undefined: there is none. */
export async function readMessage(
  api: StreamApi,
  which: { seq: number } | { last_by_subj: string },
): Promise<LogMessage | undefined> {
  try {
    const { message } = await api.ask<StoredMessage>('STREAM.MSG.GET', which)
    return {
      seq: message.seq,
      at: Date.parse(message.time),
      data: Buffer.from(message.data ?? '', 'base64'),
      msgId: msgIdOf(Buffer.from(message.hdrs ?? '', 'base64').toString('latin1')),
    }
  } catch (error) {
    if (error instanceof BrokerApiError && error.code === MESSAGE_NOT_FOUND) return undefined
    throw error
  }
}
