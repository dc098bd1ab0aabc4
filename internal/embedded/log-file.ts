/** Files that the output of an embedded server is appended to, over all its runs. */
import { statSync, truncateSync } from 'node:fs'

const MAX_LOG_BYTES = 10 * 1024 * 1024

/** Before a start: the log kept small over the years; returns where it ends now, bytes. */
export function startLog(logFile: string): number {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
  if (size <= MAX_LOG_BYTES) return size
  truncateSync(logFile)
  return 0
}
