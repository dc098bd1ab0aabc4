/** The ingress role: credits, packs, and the ingest endpoint. */
import type { Meter } from '@opentelemetry/api'
import type { AuditTrail } from '../../internal/audit/trail.ts'
import { CreditLedger } from '../../internal/billing/ledger.ts'
import type { BodyShares } from '../../internal/http/body-shares.ts'
import type { HealthCheck } from '../../internal/http/health.ts'
import { IngestRoute } from '../../internal/http/ingest.ts'
import type { Gate } from '../../internal/http/listener.ts'
import { Ingest } from '../../internal/ingest/accept.ts'
import { AcknowledgedPacks } from '../../internal/ingest/acknowledged.ts'
import { Packer } from '../../internal/ingest/packer.ts'
import { LedgerUnavailableError } from '../../internal/ingest/ports.ts'
import { ReportedShares } from '../../internal/ingest/shares.ts'
import { UnansweredInboxes } from '../../internal/ingest/unanswered-inboxes.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { PostgresCreditStatements } from '../../internal/postgres/ledger.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import { createIngestTelemetry } from '../../internal/telemetry/ingest-telemetry.ts'
import { RefusedWebhooks } from '../../internal/telemetry/refused-webhooks.ts'
import type { Logs, Node, Store } from './foundation.ts'

/** Connections for credit statements: one flies a customer. */
const LEDGER_POOL = 4

export interface Ingress {
  readonly route: IngestRoute
  readonly ledger: CreditLedger
  /** Whether the inboxes take packs. */
  readonly inboxes: HealthCheck
}

/** What the routes of a listener share. */
export interface Transport {
  readonly gate: Gate
  readonly bodies: BodyShares
  readonly audit: AuditTrail
}

/** `fail` ends the process: this node was taken for gone, and its credits were refunded. */
export async function startIngress(
  node: Node,
  store: Store,
  logs: Logs,
  meter: Meter,
  { gate, bodies, audit }: Transport,
  fail: (error: Error) => void,
): Promise<Ingress> {
  const { lifecycle, clock, config, log, boot } = node
  const statements = await lifecycle.acquire(
    'ledger connections',
    () => new PostgresCreditStatements({ open: () => connect(store.databaseUrl, { max: LEDGER_POOL }) }),
    (it) => it.end(),
  )
  const ledger = await lifecycle.acquire(
    'ledger',
    () =>
      new CreditLedger({
        boot,
        statements,
        clock,
        unavailable: (message, cause) => new LedgerUnavailableError(message, { cause }),
        onClosed: () => fail(new Error('the ledger of this node was closed by another node')),
        onProblem: (error) => log.warn({ error: String(error) }, 'a credit statement is repeated'),
      }),
    (it) => it.close(2_000),
  )
  await ledger.open()
  const refusals = await lifecycle.acquire(
    'refused webhooks',
    () => new RefusedWebhooks(log, clock),
    async (it) => it.stop(),
  )
  const telemetry = createIngestTelemetry(log, meter, refusals)
  const acknowledged = await lifecycle.acquire(
    'acknowledged packs',
    () =>
      new AcknowledgedPacks({
        clock,
        telemetry,
        shards: logs.shards,
        logOf: (shard) => logs.broker.inbox(shard),
      }),
    async (it) => it.close(),
  )
  const unanswered = new UnansweredInboxes(clock)
  logs.broker.onReconnect(() => {
    acknowledged.check()
    unanswered.forget()
  })
  const inbox = await lifecycle.acquire(
    'packs',
    () =>
      new Packer({
        clock,
        telemetry,
        shards: logs.shards,
        subjects: config.subjects,
        messages: logs.broker,
        logOf: (shard) => logs.broker.inbox(shard),
        randomness: systemRandomness(),
        onStored: (shard, seq, packId) => acknowledged.acknowledged(shard, seq, packId),
        onEnded: (shard, answered) => unanswered.report(shard, answered),
      }),
    (it) => it.close(),
  )
  const shares = await lifecycle.acquire(
    'shares',
    () => new ReportedShares({ clock, telemetry, shards: logs.shards, messages: logs.broker }),
    (it) => it.close(),
  )
  const { buffers, keys } = store
  const ingest = new Ingest({ buffers, keys, ledger, inbox, shares, telemetry, clock })
  const { maxBodyBytes } = config
  const route = new IngestRoute({ ingest, clock, gate, maxBodyBytes, bodies, telemetry, audit })
  return { route, ledger, inboxes: () => unanswered.refuse() }
}
