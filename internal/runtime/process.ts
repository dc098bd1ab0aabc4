/** Ties a `Lifecycle` to the process: its signals, its uncaught errors, its exit code. */
import type { Clock } from './clock.ts'
import { Lifecycle, type LifecycleLog, SHUTDOWN_BUDGET_MS, StoppingError } from './lifecycle.ts'

/**
 * A second signal ends the process at once, but not when it comes right behind the first: on Ctrl-C the
 * terminal signals the whole group and npm passes it on once more. Ms.
 */
const SAME_SIGNAL_MS = 500

export interface ServiceProcess {
  readonly lifecycle: Lifecycle
  /** Ends the process with exit code 1 after a drain: something it cannot live without is gone. */
  fail(error: Error): void
}

/**
 * Runs `start`, then until a signal, and exits the process: 0 after a clean drain. An error of `start` is
 * reported by `report` (one line for what the operator can mend) and ends with 1. `shutdownMs`: what the drain may take
 * at most, default 14 s.
 */
export function runService(
  clock: Clock,
  log: LifecycleLog,
  report: (error: unknown) => void,
  start: (service: ServiceProcess) => Promise<void>,
  shutdownMs = SHUTDOWN_BUDGET_MS,
): void {
  const lifecycle = new Lifecycle(clock, log, shutdownMs)
  const end = async (reason: string, code: number) => {
    if (lifecycle.stopping) return
    log.info({ reason }, 'stopping')
    const errors = await lifecycle.shutdown()
    for (const error of errors) log.error({ err: error }, error.message)
    log.info({ errors: errors.length }, 'stopped')
    process.exit(errors.length > 0 ? 1 : code)
  }
  const fail = (error: Error) => {
    log.fatal({ err: error }, error.message)
    void end(error.message, 1)
  }
  onSignals(clock, (signal) => void end(signal, 0))
  process.on('uncaughtException', fail)
  start({ lifecycle, fail }).catch((error: unknown) => {
    if (error instanceof StoppingError) return
    report(error)
    void end('the start failed', 1)
  })
}

function onSignals(clock: Clock, stop: (signal: string) => void): void {
  let first: number | undefined
  const onSignal = (signal: string) => {
    first ??= clock.monotonic()
    if (clock.monotonic() - first > SAME_SIGNAL_MS) process.exit(1)
    stop(signal)
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, onSignal)
}
