/** What ingest reports, as log events and metrics. A request costs additions only; a stored pack one event. */
import type { Meter } from '@opentelemetry/api'
import { errors } from '../domain/errors.ts'
import type { IngestAnswer } from '../ingest/answer.ts'
import type {
  Holder,
  IngestTelemetry,
  LostPackTelemetry,
  PackTelemetry,
  ShareTelemetry,
} from '../ingest/ports.ts'
import type { IngestHead } from '../ingest/request.ts'
import { counter, distribution, latency } from './counter.ts'
import type { Logger } from './logger.ts'
import type { RefusedWebhooks } from './refused-webhooks.ts'

const HOLDERS: readonly Holder[] = ['buffer', 'customer']
const ITEM_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]

/** `refusals`: what becomes of refused webhooks in the log. */
export function createIngestTelemetry(
  log: Logger,
  meter: Meter,
  refusals: Pick<RefusedWebhooks, 'add'>,
): IngestTelemetry & PackTelemetry & LostPackTelemetry & ShareTelemetry {
  return { ...requestEvents(log, meter, refusals), ...packEvents(log, meter), ...shareEvents(log) }
}

/** Those that say nothing of a buffer: it is not there, or nobody could ask whether it is. */
const OF_NO_BUFFER: readonly (string | null)[] = [
  errors.bufferNotFound.error,
  errors.databaseUnavailable.error,
]

function requestEvents(log: Logger, meter: Meter, refusals: Pick<RefusedWebhooks, 'add'>): IngestTelemetry {
  // Asked once: each request would pay for the question, and for the event that nobody wants.
  const follows = log.isLevelEnabled('debug')
  const accepted = counter(meter, 'penstock_ingest_accepted', 'Ingest requests answered 202')
  const refused = counter(meter, 'penstock_ingest_refused', 'Ingest requests answered otherwise', 'status')
  const verdicts = counter(meter, 'penstock_late_verdicts', 'Verdicts known only after the answer', 'outcome')
  const overShare = counter(
    meter,
    'penstock_ingest_over_share',
    'Requests refused because their buffer or customer holds its whole share of a shard',
    'holder',
  )
  // Shown from the start: a series that is not there yet raises no alert.
  for (const holder of HOLDERS) overShare.add(0, holder)
  const unavailable = counter(
    meter,
    'penstock_ingest_unavailable',
    'Requests that a dependency failed',
    'dependency',
  )
  return {
    answered(answer, head) {
      const { status, reason } = answer
      if (reason === null) accepted.add(1)
      else {
        refused.add(1, String(status))
        refusals.add(OF_NO_BUFFER.includes(reason) ? undefined : head?.bufferId, answer)
      }
      if (follows && head !== null) follow(log, answer, head)
    },
    lateVerdict(outcome) {
      verdicts.add(1, outcome)
    },
    overShare(holder) {
      overShare.add(1, holder)
    },
    unavailable(dependency, error) {
      unavailable.add(1, dependency)
      log.warn({ dependency, error: String(error) }, 'unavailable')
    },
  }
}

function follow(log: Logger, { status, reason, item }: IngestAnswer, head: IngestHead): void {
  const { requestId, projectId, bufferId } = head
  if (item !== null) log.debug({ requestId, projectId, bufferId, ...item }, 'webhook accepted')
  else log.debug({ requestId, projectId, bufferId, status, reason }, 'webhook refused')
}

/** Not one a request: a sender may try often while its buffer is full. */
function shareEvents(log: Logger): ShareTelemetry {
  return {
    shareReached({ holder, id, ...event }) {
      if (holder === 'buffer') log.warn({ ...event, bufferUid: id }, 'a buffer holds its whole share')
      else log.warn({ ...event, customerId: id }, 'a customer holds its whole share')
    },
    shareLeft({ shard, holder, id }) {
      if (holder === 'buffer') log.info({ shard, bufferUid: id }, 'a buffer has room again')
      else log.info({ shard, customerId: id }, 'a customer has room again')
    },
  }
}

function packEvents(log: Logger, meter: Meter): PackTelemetry & LostPackTelemetry {
  const items = counter(meter, 'penstock_inbox_items', 'Items stored in inboxes')
  const bytes = counter(meter, 'penstock_inbox_bytes', 'Bytes stored in inboxes')
  const packItems = distribution(meter, 'penstock_pack_items', 'Items of a stored pack', ITEM_BOUNDS)
  const retries = counter(meter, 'penstock_inbox_append_retries', 'Repeated attempts of inbox appends')
  const append = latency(meter, 'penstock_inbox_append_duration', 'Round trip of an inbox append')
  const lost = counter(
    meter,
    'penstock_ingest_lost_tails',
    'Times that the broker lost packs it had acknowledged',
  )
  return {
    batch(event) {
      items.add(event.items)
      bytes.add(event.bytes)
      packItems.record(event.items)
      append.record(event.ms)
      retries.add(event.attempts - 1)
      log.debug(event, 'pack')
    },
    lostPacks(event) {
      lost.add(1)
      log.error(event, 'the broker lost webhooks that it had acknowledged')
    },
  }
}
