/**
 * The snapshots of a shard in its archive (docs/architecture/protocol.md, "Snapshots"). A snapshot is a cache of a committed prefix of
 * the journal: anybody may write one at any time, and it counts when all of it is there.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { AppendAnswer, Archive } from '../broker.ts'
import { type CommitName, isSameCommit } from '../journal/commit-name.ts'
import {
  endSubject,
  filterOf,
  PROBE,
  partSubject,
  SNAPSHOTS,
  type StoredSnapshot,
  snapshotsOf,
} from './snapshot-subjects.ts'

/** Of one part, bytes. */
export const PART_BYTES = 256 * 1024
/** Of the archive's `max_bytes`: the current snapshot, the next one and one that was left half written fit. */
const SNAPSHOT_SHARE = 0.3
/** Of the archive's `max_bytes`, for all snapshots: a claim cannot do without its probe. */
const USED_SHARE = 0.95
const APPEND_TIMEOUT_MS = 2_000
const RETRY_PAUSE_MS = 50
/** Appends of one message: past them the snapshot is given up. */
const MOST_ATTEMPTS = 20
const NO_DATA = Buffer.alloc(0)

/** What makes a snapshot complete: as JSON under its `end`. */
interface End {
  readonly parts: number
  readonly bytes: number
  /** As hex. */
  readonly sha256: string
}

export interface SnapshotArchiveOptions {
  readonly archive: Archive
  readonly clock: Clock
  /** In front of message ids: no other claim or process has it. null: nothing is written, and an old list may be believed. */
  readonly writer: string | null
  /** Of one part, bytes; default 256 KB. */
  readonly partBytes?: number
}

/** The archive has no room for it. */
export class ArchiveFullError extends Error {
  override readonly name = 'ArchiveFullError'
}

export class SnapshotArchive {
  readonly #options: SnapshotArchiveOptions
  #appends = 0

  constructor(options: SnapshotArchiveOptions) {
    this.#options = options
  }

  /** Newest first, by an answer that is at least as new as this call. Rejects when the archive does not answer. */
  async list(): Promise<StoredSnapshot[]> {
    const { archive, writer } = this.#options
    for (;;) {
      const probe = writer === null ? 0 : await this.#probe()
      const { lastSeq, subjects } = await archive.list(SNAPSHOTS)
      if (lastSeq >= probe) return snapshotsOf(subjects)
      // A server answered that is behind, or a power cut took the probe: that one will not come.
      await sleep(this.#options.clock, RETRY_PAUSE_MS)
    }
  }

  /**
   * Writes the snapshot after the commit `name`: `slices` are its bytes, and a turn of the event loop passes between two of them. What
   * others left without an end goes first: whoever cuts a journal proves its claim behind the end. What is written again is not removed,
   * for a removal may come late. Answers its bytes; rejects when stopped, with ArchiveFullError, or when the archive does not answer.
   */
  async write(name: CommitName, slices: Iterable<Uint8Array>, stopped: () => boolean): Promise<number> {
    const { archive, clock, partBytes = PART_BYTES } = this.#options
    for (const { name: other, hasEnd } of await this.list())
      if (!hasEnd && !isSameCommit(other, name)) await archive.remove(filterOf(other))
    const { maxBytes, bytes: taken } = await archive.state()
    const most =
      maxBytes > 0
        ? Math.min(maxBytes * SNAPSHOT_SHARE, maxBytes * USED_SHARE - taken)
        : Number.POSITIVE_INFINITY
    const hash = createHash('sha256')
    let [parts, bytes] = [0, 0]
    for await (const part of partsOf(slices, partBytes, clock)) {
      if (stopped()) throw new Error('stopped while a snapshot was written')
      bytes += part.length
      if (bytes > most) throw new ArchiveFullError(`there is room for ${Math.floor(most)} bytes`)
      hash.update(part)
      await this.#store(partSubject(name, parts++), part)
    }
    const end: End = { parts, bytes, sha256: hash.digest('hex') }
    await this.#store(endSubject(name), Buffer.from(JSON.stringify(end)))
    return bytes
  }

  /** The bytes of a snapshot; undefined when not all of them are there. */
  async read(name: CommitName): Promise<Buffer | undefined> {
    const { archive } = this.#options
    const end = endOf((await archive.lastOf(endSubject(name)))?.data)
    if (end === undefined) return undefined
    const hash = createHash('sha256')
    const parts: Uint8Array[] = []
    for (let part = 0; part < end.parts; part++) {
      const data = (await archive.lastOf(partSubject(name, part)))?.data
      if (data === undefined) return undefined
      hash.update(data)
      parts.push(data)
    }
    return hash.digest('hex') === end.sha256 ? Buffer.concat(parts) : undefined
  }

  /** Removes all snapshots of commits before this one, and the probes. Nothing of it is needed again. */
  async removeBefore(name: CommitName): Promise<void> {
    const { archive } = this.#options
    for (const { name: other } of await this.list())
      if (other.seq < name.seq) await archive.remove(filterOf(other))
    await archive.remove(PROBE)
  }

  async #probe(): Promise<number> {
    const answer = await this.#append(PROBE, NO_DATA)
    if (answer.kind !== 'stored') throw new Error(`the archive takes no probe: ${reasonOf(answer)}`)
    return answer.seq
  }

  async #store(subject: string, data: Uint8Array): Promise<void> {
    const answer = await this.#append(subject, data)
    if (answer.kind === 'full') throw new ArchiveFullError('full')
    if (answer.kind !== 'stored') throw new Error(reasonOf(answer))
  }

  async #append(subject: string, data: Uint8Array): Promise<AppendAnswer> {
    const { archive, clock, writer } = this.#options
    const message = { subject, msgId: `${writer}-${++this.#appends}`, timeoutMs: APPEND_TIMEOUT_MS }
    for (let attempt = 1; ; attempt++) {
      const answer = await archive.append(data, message)
      if (answer.kind === 'stored' || attempt === MOST_ATTEMPTS) return answer
      await sleep(clock, RETRY_PAUSE_MS)
    }
  }
}

function reasonOf(answer: AppendAnswer): string {
  return answer.kind === 'unknown' ? answer.error : answer.kind
}

/** The slices joined to parts of equal length, with a turn between two slices. */
async function* partsOf(slices: Iterable<Uint8Array>, length: number, clock: Clock): AsyncGenerator<Buffer> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for (const slice of slices) {
    waiting.push(slice)
    bytes += slice.length
    while (bytes >= length) {
      const joined = Buffer.concat(waiting)
      yield joined.subarray(0, length)
      waiting = [joined.subarray(length)]
      bytes -= length
    }
    await sleep(clock, 0)
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

function endOf(data: Uint8Array | undefined): End | undefined {
  if (data === undefined) return undefined
  const end = JSON.parse(Buffer.from(data).toString()) as Partial<End>
  return Number.isSafeInteger(end.parts) && typeof end.sha256 === 'string' ? (end as End) : undefined
}
