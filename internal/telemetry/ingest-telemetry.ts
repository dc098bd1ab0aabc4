/** What ingest reports, as log events and metrics. A request costs additions only; a stored pack one event. */
import type { Meter } from '@opentelemetry/api'
import type { Holder, IngestTelemetry, PackTelemetry, ShareTelemetry } from '../ingest/ports.ts'
import { counter, distribution, latency } from './counter.ts'
import type { Logger } from './logger.ts'

const HOLDERS: readonly Holder[] = ['buffer', 'customer']
const ITEM_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]

export function createIngestTelemetry(
  log: Logger,
  meter: Meter,
): IngestTelemetry & PackTelemetry & ShareTelemetry {
  return { ...requestEvents(log, meter), ...packEvents(log, meter), ...shareEvents(log) }
}

function requestEvents(log: Logger, meter: Meter): IngestTelemetry {
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
    answered(status) {
      if (status === 202) accepted.add(1)
      else refused.add(1, String(status))
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

function packEvents(log: Logger, meter: Meter): PackTelemetry {
  const items = counter(meter, 'penstock_inbox_items', 'Items stored in inboxes')
  const bytes = counter(meter, 'penstock_inbox_bytes', 'Bytes stored in inboxes')
  const packItems = distribution(meter, 'penstock_pack_items', 'Items of a stored pack', ITEM_BOUNDS)
  const retries = counter(meter, 'penstock_inbox_append_retries', 'Repeated attempts of inbox appends')
  const append = latency(meter, 'penstock_inbox_append_duration', 'Round trip of an inbox append')
  return {
    batch(event) {
      items.add(event.items)
      bytes.add(event.bytes)
      packItems.record(event.items)
      append.record(event.ms)
      retries.add(event.attempts - 1)
      log.debug(event, 'pack')
    },
  }
}
