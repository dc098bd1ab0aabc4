/**
 * The bodies of dead letters as they are read: inline, or in parts (`dead-letter-uploads.ts`). Slice by slice, each in a
 * statement of its own: a statement that sends all of a large body over a slow line would not end within its time.
 */
import { hash } from 'node:crypto'
import { Semaphore } from '../runtime/semaphore.ts'
import type { Database } from './connection.ts'
import { PART_BYTES } from './dead-letter-uploads.ts'

/** Of a node: whatever else it asks of Postgres waits behind two slices at most. */
const SLICES_AT_ONCE = 2

interface Head {
  readonly sha256: Uint8Array
  /** Where its parts stand; null: inline, or not stored. */
  readonly bodyId: number | null
  /** Of an inline body; null: in parts, or not stored. */
  readonly bytes: number | null
  /** The first slice of an inline body, base64: of most bodies there is no other. */
  readonly slice: string | null
}

export class DeadLetterBodies {
  readonly #db: Database
  readonly #turns = new Semaphore(SLICES_AT_ONCE)

  constructor(db: Database) {
    this.#db = db
  }

  /** The exact bytes; null: not stored, or not all of it; undefined: no such item. */
  async read(dlqId: string): Promise<Uint8Array | null | undefined> {
    const head = await this.#inTurn(() => this.#head(dlqId))
    if (head === undefined) return undefined
    const body = head.bodyId === null ? await this.#inline(dlqId, head) : await this.#inParts(head.bodyId)
    if (body !== null && hash('sha256', body, 'buffer').equals(head.sha256)) return body
    return (await this.#exists(dlqId)) ? null : undefined
  }

  async #head(dlqId: string): Promise<Head | undefined> {
    const [head] = await this.#db<Head[]>`
      SELECT body_sha256 AS sha256, body_id AS "bodyId", octet_length(body) AS bytes,
        encode(substring(body FOR ${PART_BYTES}), 'base64') AS slice
      FROM dlq_items WHERE dlq_id = ${dlqId}`
    return head
  }

  async #inline(dlqId: string, { bytes, slice }: Head): Promise<Buffer | null> {
    if (bytes === null) return null
    return this.#join(bytes, async (at) => {
      if (at === 0) return slice
      const [row] = await this.#db<{ slice: string | null }[]>`
        SELECT encode(substring(body FROM ${at + 1} FOR ${PART_BYTES}), 'base64') AS slice
        FROM dlq_items WHERE dlq_id = ${dlqId}`
      return row?.slice
    })
  }

  async #inParts(bodyId: number): Promise<Buffer | null> {
    const [whole] = await this.#db<{ bytes: number | null }[]>`
      SELECT sum(octet_length(data))::int AS bytes FROM dlq_body_parts
      WHERE body_id = ${bodyId} AND content = 'body'`
    return this.#join(whole?.bytes ?? 0, async (at) => {
      const [row] = await this.#db<{ slice: string }[]>`
        SELECT encode(data, 'base64') AS slice FROM dlq_body_parts
        WHERE body_id = ${bodyId} AND content = 'body' AND part = ${at / PART_BYTES}`
      return row?.slice
    })
  }

  /** `sliceAt` a multiple of `PART_BYTES`. null: one is not there. */
  async #join(
    bytes: number,
    sliceAt: (at: number) => Promise<string | null | undefined>,
  ): Promise<Buffer | null> {
    const body = Buffer.allocUnsafe(bytes)
    for (let at = 0; at < bytes; at += PART_BYTES) {
      const slice = await this.#inTurn(() => sliceAt(at))
      if (!slice) return null
      body.write(slice, at, 'base64')
    }
    return body
  }

  async #exists(dlqId: string): Promise<boolean> {
    return (await this.#db`SELECT FROM dlq_items WHERE dlq_id = ${dlqId}`).length > 0
  }

  async #inTurn<T>(read: () => Promise<T>): Promise<T> {
    await this.#turns.acquire()
    try {
      return await read()
    } finally {
      this.#turns.release()
    }
  }
}
