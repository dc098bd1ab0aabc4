/** What is known of an owner from outside when its doings are judged. */
import type { BufferRecord } from '../../../internal/domain/model.ts'

export interface Owner {
  readonly boot: string
  /** 0 until it has claimed the shard. */
  readonly epoch: number
  readonly killed: boolean
  /** What it knows was lost with the power: it has to find out, and what it does until then is judged by what follows. */
  readonly misled: boolean
  /** Its node is not certain of its lease. */
  readonly uncertain: boolean
  /** When its node became certain again, virtual ms; 0: it always was. */
  readonly certainSince: number
  /** When it was told to let go, virtual ms; null: it was not. */
  readonly leavingSince: number | null
  readonly buffers: KnownBuffers
}

/** The records of buffers that an owner was given last, by whatever way: what its cache holds. */
export class KnownBuffers {
  readonly #records = new Map<string, BufferRecord>()
  readonly #parallel = new Set<string>()

  learn(record: BufferRecord): void {
    this.#records.set(record.uid, record)
    if (record.buffer.throughput.maxConcurrencyPerGroup > 1) this.#parallel.add(record.uid)
  }

  get(uid: string): BufferRecord | undefined {
    return this.#records.get(uid)
  }

  /** It was never given a record that allows more than one batch of a group at once. */
  isSerial(uid: string): boolean {
    return this.#records.has(uid) && !this.#parallel.has(uid)
  }
}
