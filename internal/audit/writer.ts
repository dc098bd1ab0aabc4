/**
 * Writes records in the background, many in one statement. Nobody waits for it: what cannot be written now waits in
 * memory, up to a bound, and is written when Postgres is back.
 *
 * Invariant: a record is in memory until Postgres has confirmed it, so an answer that is lost costs a repetition and no
 * record.
 */
import type { AuditRecord } from '../domain/audit.ts'
import type { Clock } from '../runtime/clock.ts'
import { withDeadline } from '../runtime/deadline.ts'
import type { AuditLoss, AuditStore, AuditTelemetry } from './ports.ts'

export interface AuditWriterOptions {
  readonly store: Pick<AuditStore, 'insert'>
  readonly clock: Clock
  readonly telemetry: Pick<AuditTelemetry, 'written' | 'waits'>
  /** Whether this error only says that Postgres cannot be asked now. */
  readonly isOutage: (error: unknown) => boolean
  /** These will not be written. */
  readonly onLost: (reason: AuditLoss, records: readonly AuditRecord[]) => void
  /** Records in memory at most: about 1 KB each. Default 10,000. */
  readonly maxWaiting?: number
}

export interface AuditWriter {
  /** false: memory is full, or the process stops. Never waits, and never throws. */
  add(record: AuditRecord): boolean
  /** Writes what is there, for 3 s at most; nothing is taken afterwards. */
  stop(): Promise<void>
}

/** What arrives within this time joins one statement, ms. */
const GATHER_MS = 250
/** Pause after a failure, ms. */
const RETRY_MS = 1_000
/** Of one statement. */
const MAX_BATCH = 500
/** A statement that takes longer is sent again, ms. */
const WRITE_MS = 10_000
const STOP_MS = 3_000

export function createAuditWriter(options: AuditWriterOptions): AuditWriter {
  const { store, clock, telemetry, isOutage, onLost, maxWaiting = 10_000 } = options
  let waiting: AuditRecord[] = []
  /** So many of the first ones go one by one: Postgres has refused them together. */
  let suspects = 0
  let writing: Promise<void> | undefined
  let cancelTimer: (() => void) | undefined
  let away = false
  let stopped = false

  function schedule(): void {
    if (stopped || writing !== undefined || cancelTimer !== undefined || waiting.length === 0) return
    cancelTimer = clock.after(away ? RETRY_MS : GATHER_MS, () => {
      cancelTimer = undefined
      writing = writeAll().finally(() => {
        writing = undefined
        schedule()
      })
    })
  }

  /** Until nothing is left, or Postgres does not answer. */
  async function writeAll(): Promise<void> {
    let done = true
    while (done && waiting.length > 0) done = await writeSome()
  }

  async function writeSome(): Promise<boolean> {
    const batch = waiting.slice(0, suspects > 0 ? 1 : MAX_BATCH)
    try {
      await withDeadline(clock, WRITE_MS, store.insert(batch))
    } catch (error) {
      return judge(error, batch)
    }
    away = false
    take(batch.length)
    telemetry.written(batch.length)
    return true
  }

  /** Whether it is worth going on at once. One record that Postgres refuses must not take others with it. */
  function judge(error: unknown, batch: readonly AuditRecord[]): boolean {
    if (isOutage(error)) {
      if (!away) telemetry.waits(error)
      away = true
      return false
    }
    if (batch.length > 1) suspects = batch.length
    else onLost('refused', take(1))
    return true
  }

  function take(records: number): AuditRecord[] {
    suspects = Math.max(0, suspects - records)
    const taken = waiting.slice(0, records)
    waiting = waiting.slice(records)
    return taken
  }

  return {
    add(record) {
      if (stopped || waiting.length >= maxWaiting) return false
      waiting.push(record)
      schedule()
      return true
    },
    async stop() {
      stopped = true
      cancelTimer?.()
      const last = (writing ?? Promise.resolve()).then(writeAll)
      // Late is as good as never here: the next release has to begin.
      await withDeadline(clock, STOP_MS, last).catch(() => {})
      const lost = take(waiting.length)
      if (lost.length > 0) onLost('stopped', lost)
    },
  }
}
