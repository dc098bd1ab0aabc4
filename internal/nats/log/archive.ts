/** One stream as an archive: what it holds is found, and removed, by its subjects. */
import type { AppendAnswer, Archive, LogMessage, LogState } from '../../shard/broker.ts'
import type { Connection } from '../connection.ts'
import type { ArchiveName } from '../names.ts'
import { StreamApi } from '../streams/stream-api.ts'
import type { Appender } from './append.ts'
import { readInfo, readMessage, stateOf } from './stream-reads.ts'

export interface ArchiveOptions {
  connection: Connection
  appender: Appender
  name: ArchiveName
}

export class StreamArchive implements Archive {
  readonly #appender: Appender
  readonly #root: string
  readonly #api: StreamApi

  constructor({ connection, appender, name }: ArchiveOptions) {
    this.#appender = appender
    this.#root = name.root
    this.#api = new StreamApi(connection, name.stream)
  }

  append(
    data: Uint8Array,
    { subject, msgId, timeoutMs }: { subject: string; msgId: string; timeoutMs: number },
  ): Promise<AppendAnswer> {
    return this.#appender.append({ subject: this.#root + subject, data, msgId, timeoutMs })
  }

  async state(): Promise<LogState> {
    return stateOf(await readInfo(this.#api))
  }

  async list(filter: string): Promise<{ lastSeq: number; subjects: string[] }> {
    const { lastSeq, total, subjects } = await this.#page(filter, 0)
    while (subjects.length < total) {
      const page = await this.#page(filter, subjects.length)
      // An append moves the last sequence, a removal the total: where both stay, the pages are one list.
      if (page.lastSeq !== lastSeq || page.total !== total || page.subjects.length === 0)
        throw new Error(`stream ${this.#api.stream}: it changed while it was listed`)
      subjects.push(...page.subjects)
    }
    return { lastSeq, subjects }
  }

  lastOf(subject: string): Promise<LogMessage | undefined> {
    return readMessage(this.#api, { last_by_subj: this.#root + subject })
  }

  async remove(filter: string): Promise<void> {
    await this.#api.ask('STREAM.PURGE', { filter: this.#root + filter })
  }

  /** As many as the server returns at once, in their order. `total`: on all pages. */
  async #page(filter: string, offset: number) {
    const which = { subjects_filter: this.#root + filter, offset }
    const { state, total = 0 } = await readInfo(this.#api, which)
    const subjects = Object.keys(state.subjects ?? {}).map((subject) => subject.slice(this.#root.length))
    return { lastSeq: state.last_seq, total, subjects }
  }
}
