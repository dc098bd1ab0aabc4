/** Waiting until a server that was just started answers, or is known not to. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

import { EmbeddedStartError } from './ports.ts'
import type { ServerProcess, StopStep } from './server-process.ts'

/** Recovery of a large log after a crash takes its time; past this nobody waits any more, ms. */
const DEADLINE_MS = 120_000
const PAUSE_MS = 20

/** The server did not come up; `text` is what it wrote since its start. */
export class ServerExitedError extends EmbeddedStartError {
  readonly text: string

  constructor(name: string, ended: string, text: string) {
    super(`${name} did not start (${ended}): ${lastLine(text)}`)
    this.text = text
  }
}

/**
 * Resolves when `probe` does; it is tried again until the process ends (ServerExitedError) or 120 s have
 * passed or `stop.signal` gives it up (EmbeddedStartError), and the process is gone in all those cases. `logFrom` is where in `logFile` this
 * start began, bytes.
 */
export async function untilReady(
  name: string,
  server: ServerProcess,
  probe: () => Promise<void>,
  log: { file: string; from: number },
  stop: { signal: AbortSignal | undefined; steps: StopStep[] },
): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  for (;;) {
    const problem = await probe().then(
      () => undefined,
      (error: unknown) => error,
    )
    // Also after a success: the answer may have come from a stranger on the port that ours wanted.
    if (!server.running) throw new ServerExitedError(name, await server.exited, logSince(log))
    if (problem === undefined) return
    if (stop.signal?.aborted) {
      await server.stop(stop.steps)
      throw new EmbeddedStartError(`${name}: the start was given up`)
    }
    if (performance.now() > deadline) {
      await server.stop([])
      throw new EmbeddedStartError(
        `${name} did not answer within ${DEADLINE_MS / 1000} s: ${String(problem)}`,
      )
    }
    await Promise.race([delay(PAUSE_MS), server.exited])
  }
}

function logSince(log: { file: string; from: number }): string {
  try {
    return readFileSync(log.file).subarray(log.from).toString('utf8')
  } catch {
    return ''
  }
}

function lastLine(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return (
    lines.findLast((line) => /FATAL|\[FTL\]|\[ERR\]|PANIC|nats-server:/.test(line)) ??
    lines.at(-1) ??
    'no output'
  )
}
