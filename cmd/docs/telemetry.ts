/**
 * What the telemetry of the programs reports, found by running it: each adapter is told of one event of every kind, and
 * what it then shows to Prometheus and writes to the log is what the pages say.
 */
import type { Meter } from '@opentelemetry/api'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { metrics } from '@opentelemetry/sdk-node'
import type { AuditLoss, AuthenticationPlace, PresentedCredential } from '../../internal/audit/ports.ts'
import type { LookupOutcome, Want } from '../../internal/delivery/ports.ts'
import { errors, insufficientCredits, ServiceError } from '../../internal/domain/errors.ts'
import type { DlqReason, ErrorClass, FlushReason } from '../../internal/domain/model.ts'
import { accepted, refusal } from '../../internal/ingest/answer.ts'
import type { IngestTelemetry } from '../../internal/ingest/ports.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { LogUsage, ShardTelemetry } from '../../internal/shard/ports.ts'
import { createAuditTelemetry } from '../../internal/telemetry/audit-telemetry.ts'
import { createDeliveryTelemetry } from '../../internal/telemetry/delivery-telemetry.ts'
import { createHttpTelemetry, RATE_LIMITS } from '../../internal/telemetry/http-telemetry.ts'
import { createIngestTelemetry } from '../../internal/telemetry/ingest-telemetry.ts'
import { createLogUsageTelemetry } from '../../internal/telemetry/log-usage-telemetry.ts'
import { createLogger, type Logger } from '../../internal/telemetry/logger.ts'
import { createLookupTelemetry } from '../../internal/telemetry/lookup-telemetry.ts'
import { createPaymentTelemetry } from '../../internal/telemetry/payment-telemetry.ts'
import { RefusedWebhooks } from '../../internal/telemetry/refused-webhooks.ts'
import { createSecretTelemetry } from '../../internal/telemetry/secret-telemetry.ts'
import { createShardTelemetry } from '../../internal/telemetry/shard-telemetry.ts'
import type { PassResult } from '../../operator/controller/controller.ts'
import { operatorMetrics } from '../../operator/controller/metrics.ts'

/** A family as Prometheus shows it. */
export interface Family {
  readonly name: string
  readonly type: string
  /** Empty: it counts. */
  readonly unit: string
  readonly help: string
  /** Names of labels, with their values when the code knows all of them. */
  readonly labels: ReadonlyMap<string, readonly string[]>
}

/** One event of a log: on which levels it is told, and its members. */
export interface WideEvent {
  readonly name: string
  readonly levels: readonly string[]
  readonly members: readonly string[]
}

export interface Observed {
  readonly families: readonly Family[]
  readonly events: readonly WideEvent[]
}

/** Everything that an adapter of this kind can show, by what it is told of. */
export const telemetrySources = {
  ingest: tellIngest,
  http: tellHttp,
  audit: tellAudit,
  shards: tellShards,
  deliveries: tellWithheld,
  lookups: tellLookups,
  logs: tellLogs,
  secrets: tellSecrets,
  payments: tellPayments,
  operator: tellOperator,
} as const

export type TelemetrySource = keyof typeof telemetrySources

/** Throws for a metric that none of the events moved: the page could not say its labels. */
export async function observe(source: TelemetrySource): Promise<Observed> {
  const lines: Record<string, unknown>[] = []
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const provider = new metrics.MeterProvider({ readers: [exporter] })
  const made = new Set<string>()
  telemetrySources[source](
    createLogger({ level: 'debug', role: 'docs', destination }),
    noting(provider.getMeter('docs'), made),
  )
  const { resourceMetrics } = await exporter.collect()
  // Without a prefix, times, the labels of the resource, and the scope.
  const text = new PrometheusSerializer('', false, undefined, true, true).serialize(resourceMetrics)
  await provider.shutdown()
  const families = familiesIn(text)
  const unmoved = [...made].filter((name) => !families.some((family) => family.name.startsWith(name)))
  if (unmoved.length > 0) throw new Error(`no event of ${source} moves ${unmoved.join(', ')}`)
  return { families, events: eventsIn(lines) }
}

/** The same meter, which notes the names of all that is made of it. */
function noting(meter: Meter, made: Set<string>): Meter {
  return new Proxy(meter, {
    get(target, property) {
      const value = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (String(property).startsWith('create')) made.add(String(args[0]))
        return Reflect.apply(value, target, args)
      }
    },
  })
}

/** What stands in Prometheus' text. Of a histogram the label of its buckets is no label of ours. */
export function familiesIn(text: string): Family[] {
  return text.split(/^(?=# HELP )/m).flatMap((part) => {
    const [, name, help] = /^# HELP (\S+) (.*)$/m.exec(part) ?? []
    const [, type] = /^# TYPE \S+ (\S+)$/m.exec(part) ?? []
    const [, unit = ''] = /^# UNIT \S+ (\S+)$/m.exec(part) ?? []
    if (name === undefined || help === undefined || type === undefined) return []
    return [{ name, type, unit, help, labels: labelsIn(part) }]
  })
}

function labelsIn(text: string): Map<string, string[]> {
  const values = new Map<string, Set<string>>()
  for (const [, labels = ''] of text.matchAll(/^\w+\{(.*)\} \S+$/gm)) {
    for (const [, name = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
      if (name !== 'le') values.set(name, (values.get(name) ?? new Set()).add(value))
    }
  }
  return new Map([...values].map(([name, known]) => [name, [...known]]))
}

/** In every line of a log. */
const OF_EVERY_LINE = ['level', 'time', 'role', 'msg']

function eventsIn(lines: readonly Record<string, unknown>[]): WideEvent[] {
  return [...Map.groupBy(lines, ({ msg }) => String(msg))].map(([name, told]) => ({
    name,
    levels: [...new Set(told.map(({ level }) => String(level)))],
    members: [...new Set(told.flatMap(Object.keys))].filter((member) => !OF_EVERY_LINE.includes(member)),
  }))
}

/** All values of a type: the compiler refuses a value too many and one too few. */
function valuesOf<T extends string>(all: Record<T, true>): T[] {
  return Object.keys(all) as T[]
}

const OUTCOMES = valuesOf<'delivered' | 'retry' | 'rejected' | 'exhausted'>({
  delivered: true,
  retry: true,
  rejected: true,
  exhausted: true,
})
const CLASSES = valuesOf<ErrorClass>({
  timeout: true,
  connection: true,
  dns: true,
  tls: true,
  blocked_destination: true,
  http_4xx: true,
  http_5xx: true,
  http_other: true,
})
const FLUSHES = valuesOf<FlushReason>({
  items: true,
  bytes: true,
  segment: true,
  idle: true,
  max_wait: true,
})
const DEATHS = valuesOf<DlqReason>({ max_retries_exceeded: true, non_retryable_error: true })
const DEPENDENCIES = valuesOf<Parameters<IngestTelemetry['unavailable']>[0]>({
  buffers: true,
  keys: true,
  ledger: true,
  inbox: true,
  secrets: true,
})
const VERDICTS = valuesOf<Parameters<IngestTelemetry['lateVerdict']>[0]>({
  new: true,
  duplicate: true,
  unknown: true,
})
const LOOKUPS = valuesOf<LookupOutcome>({
  found: true,
  failed: true,
  unanswered: true,
  refused: true,
  unreachable: true,
})
const WANTS = valuesOf<Want>({ room: true, socket: true })
const PLACES = valuesOf<AuthenticationPlace>({ management: true, ingest: true })
const CREDENTIALS = valuesOf<PresentedCredential>({ key: true, token: true, none: true })
const LOSSES = valuesOf<AuditLoss>({ limit: true, full: true, refused: true, stopped: true })
const PASSES = valuesOf<PassResult>({ success: true, requeue: true, error: true, stopped: true })
/** Of `ShardTelemetry.ownership`, whose type is any text. */
export const OWNERSHIP = ['replaying', 'running', 'released', 'fenced', 'failed', 'abandoned'] as const

function tellIngest(log: Logger, meter: Meter): void {
  const refusals = new RefusedWebhooks(log, systemClock())
  const telemetry = createIngestTelemetry(log, meter, refusals)
  const head = { requestId: 'r', projectId: 'p', bufferId: 'b', header: () => undefined }
  telemetry.answered(accepted('m', 'i'), head)
  telemetry.answered(refusal(insufficientCredits(0, 1)), head)
  telemetry.answered(refusal(new ServiceError('groupKeyMissing'), { path: '$.p', header: 'h' }), head)
  refusals.stop()
  for (const holder of ['buffer', 'customer'] as const) {
    telemetry.overShare(holder)
    telemetry.shareReached({ shard: 0, holder, id: 'id', bytes: 2, limit: 1 })
    telemetry.shareLeft({ shard: 0, holder, id: 'id' })
  }
  telemetry.batch({ shard: 0, items: 1, bytes: 1, ms: 1, attempts: 1 })
  for (const outcome of VERDICTS) telemetry.lateVerdict(outcome)
  for (const dependency of DEPENDENCIES) telemetry.unavailable(dependency, new Error('away'))
}

function tellSecrets(log: Logger, meter: Meter): void {
  const telemetry = createSecretTelemetry(log, meter)
  telemetry.rowsWithoutKey([{ table: 'buffers', keyId: 'k', rows: 1 }])
  telemetry.rowsWithoutKey([])
  telemetry.unreadable({ bufferId: 'b', uid: 'u', error: 'e' })
}

function tellPayments(log: Logger, meter: Meter): void {
  const telemetry = createPaymentTelemetry(log, meter, systemClock(), () => 1)
  const reference = { kind: 'invoice', id: 'i' } as const
  telemetry.unusable({ reference, reason: 'r' })
  telemetry.stranger({ reference, customerId: 'c' })
  telemetry.secondSubscription({ subscriptionId: 's', customerId: 'c', refused: [] })
  telemetry.secondSubscription({ subscriptionId: 's', customerId: 'c', refused: ['r'] })
  telemetry.customerReplaced({ customerId: 'c', gone: 'g' })
  telemetry.refused('r')
  telemetry.swept({ read: 1, later: 0 })
  telemetry.sweepFailed(new Error('away'))
}

function tellHttp(log: Logger, meter: Meter): void {
  const telemetry = createHttpTelemetry(log, meter)
  telemetry.failed({ requestId: 'r', method: 'GET', path: '/', error: new Error('x') })
  for (const limit of RATE_LIMITS) telemetry.limited(limit)
  telemetry.refused(errors.roleMissing.status)
}

function tellAudit(log: Logger, meter: Meter): void {
  const telemetry = createAuditTelemetry(log, meter)
  for (const place of PLACES)
    for (const credential of CREDENTIALS) telemetry.authenticationFailed(place, credential)
  telemetry.written(1)
  for (const reason of LOSSES) telemetry.lost(reason, 1)
  telemetry.leftOut(1)
  telemetry.waits(new Error('away'))
}

const BATCH = { shard: 0, groupId: 'g', bufferId: 'b', version: 1, items: 1 }
const ATTEMPT = { ...BATCH, attempt: 0, statusCode: 0, durationMs: 1 }

function tellShards(log: Logger, meter: Meter): void {
  const telemetry = createShardTelemetry(log, meter)
  for (const reason of FLUSHES)
    telemetry.flush({ ...BATCH, reason, payloadBytes: 1, latenessMs: 0, segment: 0 })
  for (const outcome of OUTCOMES) tellDeliveries(telemetry, outcome)
  for (const reason of DEATHS) telemetry.dead({ ...BATCH, reason, dlqId: 'd', paused: false })
  telemetry.paused({ bufferId: 'b', bufferUid: 'u', reason: 'consecutive_dead_letters', dlqId: 'd' })
  telemetry.discarded({ shard: 0, bufferId: 'b', items: 1 })
  telemetry.dropped({ shard: 0, duplicates: 1 })
  telemetry.commit({ shard: 0, ms: 1, records: 1, bytes: 1 })
  telemetry.problem({ shard: 0, what: 'w', error: 'e', detail: {} })
  telemetry.gauges({
    shard: 0,
    epoch: 1,
    openGroups: 0,
    bufferedItems: 0,
    bufferedBytes: 0,
    residentBytes: 0,
  })
  for (const state of OWNERSHIP) telemetry.ownership({ shard: 0, epoch: 1, state, replayMs: 1 })
  telemetry.ownership({ shard: 0, epoch: 1, state: 'failed', error: 'e' })
}

function tellDeliveries(telemetry: ShardTelemetry, outcome: (typeof OUTCOMES)[number]): void {
  const delivered = outcome === 'delivered'
  for (const sampled of [false, true]) {
    for (const errorClass of delivered ? [null] : CLASSES)
      telemetry.delivery({ ...ATTEMPT, outcome, errorClass, error: errorClass, sampled })
  }
}

function tellWithheld(log: Logger, meter: Meter): void {
  const telemetry = createDeliveryTelemetry(log, meter, { monotonic: () => 0 })
  for (const want of WANTS) telemetry.withheld(want)
}

function tellLookups(log: Logger, meter: Meter): void {
  let now = 0
  const telemetry = createLookupTelemetry(log, meter, { monotonic: () => now })
  for (const outcome of LOOKUPS) telemetry.lookup(outcome)
  now = Number.POSITIVE_INFINITY
  telemetry.lookup('found')
}

function tellLogs(log: Logger, meter: Meter): void {
  const telemetry = createLogUsageTelemetry(log, meter)
  const usage: LogUsage = { shard: 0, log: 'inbox', bytes: 1, maxBytes: 2 }
  telemetry.usage([usage, { ...usage, log: 'journal' }, { ...usage, log: 'archive' }])
  telemetry.nearlyFull(usage)
  telemetry.hasSpace(usage)
}

function tellOperator(_log: Logger, meter: Meter): void {
  const { controller, reflector } = operatorMetrics(meter, {
    depth: () => 0,
    failing: () => 0,
    leading: () => true,
    silence: () => [
      ['secrets', 0],
      ['buffers', 0],
    ],
  })
  for (const result of PASSES) controller.pass({ result, durationMs: 1, waitedMs: 1 })
  for (const collection of ['secrets', 'buffers']) {
    reflector.listed({ collection, objects: 1 })
    reflector.failed({ collection })
  }
}
