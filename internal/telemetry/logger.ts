/** The process's log: JSON lines on standard output, readable ones on a terminal, one an event. Secrets never get in. */
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import pretty from 'pino-pretty'
import { terminalLine } from './terminal-line.ts'

export type { Logger } from 'pino'

/** Members whose value never stands in a line, on the first two levels of an event. */
const SECRET_MEMBERS = [
  'secret',
  'signingSecret',
  'previousSecret',
  'password',
  'apiKey',
  'authorization',
  'token',
  'databaseUrl',
  'natsUrl',
]

export interface LoggerOptions {
  level: string
  /** Stands in every line as `role`. */
  role: string
  /** Default: standard output, readable when it is a terminal. */
  destination?: DestinationStream
}

export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      level: options.level,
      base: { role: options.role },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`]),
    },
    options.destination ?? standardOutput(),
  )
}

/** Not synchronous: under load a line must not wait for the reader of a pipe. What is left goes out at exit. */
function standardOutput(): DestinationStream {
  if (process.stdout.isTTY) return readable(1)
  return pino.destination({ dest: 1, sync: false })
}

/** `destination`: a file descriptor, or a stream. */
export function readable(destination: number | NodeJS.WritableStream): DestinationStream {
  return pretty({
    destination,
    sync: true,
    translateTime: 'SYS:HH:MM:ss.l',
    // The message says all; an error would take a line for each of its callers.
    hideObject: true,
    errorLikeObjectKeys: [],
    messageFormat: (event) => terminalLine(event),
  })
}
