/**
 * Workers that take keys and run a pass for each. A failed pass is repeated with its key's back-off, so that one resource
 * that always fails takes a worker for a moment only. Passes that last are bounded by namespace (`turns.ts`).
 */
import type { Clock } from '../../internal/runtime/clock.ts'
import type { Reconciler } from './ports.ts'
import { WORKERS } from './turns.ts'
import type { Taken, WorkQueue } from './work-queue.ts'

/** What running passes get to end by themselves when the operator stops, ms. */
const DRAIN_MS = 8_000

export type PassResult = 'success' | 'requeue' | 'error' | 'stopped'

export interface ControllerTelemetry {
  pass(event: { result: PassResult; durationMs: number; waitedMs: number }): void
}

export interface ControllerLog {
  debug(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
}

export interface ControllerOptions {
  queue: WorkQueue
  reconciler: Reconciler
  clock: Clock
  log: ControllerLog
  telemetry: ControllerTelemetry
  drainMs?: number
}

export class Controller {
  readonly #options: ControllerOptions
  readonly #abort = new AbortController()
  #workers: Promise<void>[] = []

  constructor(options: ControllerOptions) {
    this.#options = options
  }

  /** Once, when the stores are synced: a pass that reads half of them would take the rest for deleted. */
  start(): void {
    this.#workers = Array.from({ length: WORKERS }, () => this.#work())
  }

  /** Takes no further key and lets the running passes end; those that do not within the drain are aborted. */
  async stop(): Promise<void> {
    const { queue, clock, drainMs = DRAIN_MS } = this.#options
    queue.close()
    const cancel = clock.after(drainMs, () => this.#abort.abort())
    await Promise.all(this.#workers)
    cancel()
  }

  async #work(): Promise<void> {
    const { queue } = this.#options
    for (let taken = await queue.take(); taken; taken = await queue.take()) await this.#pass(taken)
  }

  async #pass({ key, waitedMs }: Taken): Promise<void> {
    const { queue, clock, log, telemetry } = this.#options
    const began = clock.monotonic()
    const result = await this.#reconcile(key)
    queue.done(key)
    const durationMs = clock.monotonic() - began
    telemetry.pass({ result, durationMs, waitedMs })
    log.debug({ resource: key, result, durationMs, waitedMs }, 'reconciled')
  }

  async #reconcile(key: string): Promise<PassResult> {
    const { queue, reconciler, log } = this.#options
    try {
      const { requeueAfterMs } = await reconciler.reconcile(key, this.#abort.signal)
      queue.forget(key)
      if (requeueAfterMs === undefined) return 'success'
      queue.addAfter(key, requeueAfterMs)
      return 'requeue'
    } catch (error) {
      if (this.#abort.signal.aborted) return 'stopped'
      queue.addRateLimited(key)
      log.warn({ err: error, resource: key, failures: queue.failures(key) }, 'reconcile failed')
      return 'error'
    }
  }
}
