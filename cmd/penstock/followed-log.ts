/**
 * The log of a further process, for whoever watches `npm start` on a terminal: what became of webhooks there, and what is
 * wrong there. The rest stays in its file.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import type { Clock } from '../../internal/runtime/clock.ts'
import type { Logger } from '../../internal/telemetry/logger.ts'

const EVERY_MS = 200
/** Read in one turn, bytes. What is left comes with the next. */
const AT_ONCE = 256 * 1024

/** Told whatever their level. */
const SHOWN: readonly unknown[] = ['delivery', 'dead', 'retry', 'buffer paused', 'webhooks refused']
const LEVELS = ['warn', 'error', 'fatal'] as const

export type LogEvent = Readonly<Record<string, unknown>>

/** Passes on what is written to `file` from now on, an event a call; the returned function ends it. */
export function followLog(clock: Clock, file: string, onEvent: (event: LogEvent) => void): () => void {
  let from = sizeOf(file)
  let rest = Buffer.alloc(0)
  let cancel = clock.after(EVERY_MS, look)

  function look(): void {
    cancel = clock.after(EVERY_MS, look)
    const size = sizeOf(file)
    // It is truncated when it has grown too large.
    if (size < from) {
      from = 0
      rest = Buffer.alloc(0)
    }
    const read = readPart(file, from, Math.min(size - from, AT_ONCE))
    from += read.length
    const text = Buffer.concat([rest, read])
    const end = text.lastIndexOf(0x0a) + 1
    rest = text.subarray(end)
    for (const line of text.subarray(0, end).toString('utf8').split('\n')) {
      const event = eventOf(line)
      if (event) onEvent(event)
    }
  }

  return () => cancel()
}

/** Tells an event of another process as one of this one, at its level, if it is one for whoever watches. */
export function tellFollowed(
  log: Logger,
  { level, time: _time, role: _role, msg, ...members }: LogEvent,
): void {
  const grave = LEVELS.find((each) => each === level)
  if (grave) log[grave](members, String(msg))
  else if (SHOWN.includes(msg)) log.info(members, String(msg))
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Empty when it cannot be read: nobody's webhooks may stop for it. */
function readPart(file: string, from: number, length: number): Buffer {
  if (length <= 0) return Buffer.alloc(0)
  const part = Buffer.alloc(length)
  try {
    const handle = openSync(file, 'r')
    try {
      return part.subarray(0, readSync(handle, part, 0, length, from))
    } finally {
      closeSync(handle)
    }
  } catch {
    return Buffer.alloc(0)
  }
}

/** undefined: no event, such as a line of Node itself. */
function eventOf(line: string): LogEvent | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
