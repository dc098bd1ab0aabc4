/**
 * How the streams of a shard must be set up, and what is wrong with one that is not (docs/architecture/protocol.md,
 * "Logs"). Pure. Everything here that deletes, evicts or forgets is off: what leaves a log leaves it by a purge that
 * follows a committed record.
 */
import { DiscardPolicy, nanos, RetentionPolicy, StorageType, type StreamConfig } from 'nats'
import type { StreamName } from '../names.ts'

/**
 * All retries of an append come within 10 s, but what a server holds that stands still, or is cut off from its peers, it may
 * still hand on when it goes on.
 */
export const DUPLICATE_WINDOW_MS = 120_000
/** What inboxes of former versions have; a start raises it. */
const LEAST_DUPLICATE_WINDOW_MS = 30_000

/** Below it a stream's sequences cannot be microseconds since 1970: they would repeat after a rebuild. */
const LEAST_FIRST_SEQ = 1e15

export interface StreamPlan {
  name: StreamName
  maxBytes: number
  replicas: number
  /** Unix ms at creation. */
  createdAt: number
  metadata: Record<string, string>
}

export function streamConfig(plan: StreamPlan): Partial<StreamConfig> & { name: string } {
  return {
    name: plan.name.stream,
    subjects: [plan.name.subject],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_bytes: plan.maxBytes,
    max_age: 0,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    max_msg_size: -1,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    num_replicas: plan.replicas,
    first_seq: plan.createdAt * 1000,
    // Reads decide who owns a shard: they come from the leader.
    allow_direct: false,
    deny_delete: true,
    deny_purge: false,
    metadata: plan.metadata,
  }
}

export interface StreamDemands {
  name: StreamName
  replicas: number
}

/** As the broker reports it: also what this client's types do not know yet. */
export type ReportedConfig = StreamConfig & { persist_mode?: string; subject_transform?: unknown }

/** Each setting that can lose data or break the logs, as `<setting> is <value>, must be <value>`. */
export function streamFaults(config: ReportedConfig, demands: StreamDemands): string[] {
  const is = (setting: string, value: unknown, right: boolean, must: string) =>
    right ? [] : [`${setting} is ${JSON.stringify(value)}, must be ${must}`]
  const exactly = (setting: keyof ReportedConfig, wanted: unknown) =>
    is(
      setting,
      config[setting],
      JSON.stringify(config[setting]) === JSON.stringify(wanted),
      JSON.stringify(wanted),
    )
  const unlimited = (setting: 'max_msgs' | 'max_msgs_per_subject' | 'max_msg_size') =>
    is(setting, config[setting], (config[setting] ?? -1) <= 0, '-1')
  const absent = (setting: keyof ReportedConfig) =>
    is(setting, config[setting], isNothing(config[setting]), 'off')
  const window = nanos(LEAST_DUPLICATE_WINDOW_MS)
  return [
    ...absent('mirror'),
    ...absent('sources'),
    ...exactly('subjects', [demands.name.subject]),
    ...exactly('retention', RetentionPolicy.Limits),
    ...exactly('storage', StorageType.File),
    ...absent('persist_mode'),
    ...exactly('discard', DiscardPolicy.New),
    ...absent('discard_new_per_subject'),
    ...is('max_age', config.max_age, !config.max_age, '0'),
    ...unlimited('max_msgs'),
    ...unlimited('max_msgs_per_subject'),
    ...unlimited('max_msg_size'),
    ...is('max_bytes', config.max_bytes, config.max_bytes > 0, 'a limit'),
    ...is(
      'num_replicas',
      config.num_replicas,
      config.num_replicas >= demands.replicas,
      `${demands.replicas}`,
    ),
    ...is(
      'duplicate_window',
      config.duplicate_window,
      config.duplicate_window >= window,
      `at least ${window}`,
    ),
    ...is(
      'first_seq',
      config.first_seq,
      (config.first_seq ?? 0) >= LEAST_FIRST_SEQ,
      'microseconds since 1970',
    ),
    ...absent('no_ack'),
    ...absent('sealed'),
    ...absent('deny_purge'),
    ...absent('subject_transform'),
  ]
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '' || value === 'default')
    return true
  return Array.isArray(value) && value.length === 0
}
