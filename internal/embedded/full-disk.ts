/**
 * A NATS server whose disk was full never writes to the streams concerned again, or shuts JetStream down, also once there is room
 * (2.14.0): it has to be started anew. Its log tells, unless the log stands on the same disk and finds no room either. So a disk
 * without room counts by itself.
 */
import { closeSync, openSync, readSync, statfsSync, statSync } from 'node:fs'
import type { EmbeddedLog } from './ports.ts'

const EVERY_MS = 1_000
/** Some packs and commits of every shard: with less the restarted server would be where it was, bytes. */
const ROOM_BYTES = 32 * 1024 * 1024
/** With less the server, or its log, may have failed to write something, bytes. */
const FULL_BYTES = 1024 * 1024
/** Most that is read of a log at a time, bytes. */
const TAIL_BYTES = 64 * 1024
/** How nats-server says that a stream is done for. */
const SIGNS = /critical write error|no space left on device|JetStream out of \S+ resources/i

export interface FullDiskOptions {
  /** Of the server; what stands in it already is of the past. */
  readonly logFile: string
  /** A folder on the disk that it writes to. */
  readonly dir: string
  readonly log: EmbeddedLog
  readonly restart: () => void
}

/** Restarts the server whenever its disk was full and has room again; the answer ends that. */
export function restartAfterFullDisk(options: FullDiskOptions): () => void {
  const { logFile, dir, log, restart } = options
  let read = sizeOf(logFile)
  let full = false
  const timer = setInterval(() => {
    const size = sizeOf(logFile)
    // Smaller than before: the server has begun a new file.
    const news = textBetween(logFile, size < read ? 0 : read, size)
    read = size
    const free = freeBytes(dir)
    if (!full && (free < FULL_BYTES || SIGNS.test(news))) {
      full = true
      log.error({ server: 'nats', dir }, 'the disk is full')
    }
    if (!full || !(free >= ROOM_BYTES)) return
    full = false
    log.warn({ server: 'nats', dir }, 'the disk has room again: the server is restarted')
    restart()
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** NaN, which is neither little nor enough, when the disk does not tell. */
function freeBytes(dir: string): number {
  try {
    const { bavail, bsize } = statfsSync(dir)
    return bavail * bsize
  } catch {
    return Number.NaN
  }
}

/** The last of it, when it is long; nothing when the server has just put the file aside. */
function textBetween(file: string, from: number, to: number): string {
  const start = Math.max(from, to - TAIL_BYTES)
  if (start >= to) return ''
  try {
    return textAt(file, start, to - start)
  } catch {
    return ''
  }
}

function textAt(file: string, start: number, length: number): string {
  const bytes = Buffer.alloc(length)
  const fd = openSync(file, 'r')
  try {
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, length, start))
  } finally {
    closeSync(fd)
  }
}
