/**
 * Bodies of dead letters that are too large for one short statement (docs/architecture/protocol.md, "Dead letters").
 * Their parts are stored ahead of the fenced transaction, each by a statement of its own, so no lock is held while a
 * slow line carries them. An upload that broke off goes on with the parts that are missing, whoever goes on.
 *
 * Invariant: a complete body has the hash in its name, and its parts never change.
 */
import { hash } from 'node:crypto'
import { Semaphore } from '../runtime/semaphore.ts'
import type { DeadBatch, Fence } from '../shard/ports.ts'
import type { Database, Transaction } from './connection.ts'
import { fenced } from './shards.ts'

/** A body up to this size goes into the row of its dead letter. */
export const INLINE_BYTES = 64 * 1024
/** Over a line of 20 Mbit/s a part takes 0.15 s; a statement may take 4 s. */
export const PART_BYTES = 256 * 1024
/** Of a node: whatever else it asks of Postgres waits behind two parts at most. */
const PARTS_AT_ONCE = 2

/** The parts of a body are not all there: it has to be uploaded (again) before its dead letter can refer to it. */
export class BodyNotUploadedError extends Error {
  override readonly name = 'BodyNotUploadedError'
}

interface Part {
  readonly content: 'body' | 'message_ids'
  readonly part: number
  readonly data: Buffer
}

export function isInline({ body }: DeadBatch): boolean {
  return body.length <= INLINE_BYTES
}

export class DeadLetterUploads {
  readonly #db: Database
  readonly #turns = new Semaphore(PARTS_AT_ONCE)

  constructor(db: Database) {
    this.#db = db
  }

  /** Repeatable; does nothing for a body that goes into its row. Rejects with FencedError, BodyNotUploadedError. */
  async store(fence: Fence, batch: DeadBatch): Promise<void> {
    if (isInline(batch)) return
    const { bodyId, complete } = await this.#open(fence, batch)
    if (complete) return
    const messageIds = Buffer.from(JSON.stringify(batch.messageIds))
    const parts = [...partsOf('body', asBuffer(batch.body)), ...partsOf('message_ids', messageIds)]
    const there = await this.#there(bodyId)
    for (const part of parts) if (!there.has(nameOf(part))) await this.#add(fence, bodyId, part)
    await this.#complete(fence, bodyId, hash('sha256', messageIds, 'buffer'))
  }

  async #open(fence: Fence, batch: DeadBatch): Promise<{ bodyId: number; complete: boolean }> {
    const { groupId, version, bodySha256 } = batch
    const [opened] = await this.#db<{ bodyId: number; complete: boolean }[]>`
      INSERT INTO dlq_bodies (group_id, version, sha256)
      SELECT ${groupId}, ${version}, ${bodySha256} WHERE ${this.#mayWrite(fence)}
      ON CONFLICT (group_id, version, sha256) DO UPDATE SET touched_at = now()
      RETURNING body_id AS "bodyId", complete`
    if (opened === undefined) throw fenced(fence)
    return opened
  }

  async #there(bodyId: number): Promise<Set<string>> {
    const rows = await this.#db<Pick<Part, 'content' | 'part'>[]>`
      SELECT content, part FROM dlq_body_parts WHERE body_id = ${bodyId}`
    return new Set(rows.map(nameOf))
  }

  /** Adds nothing once the body is complete or gone. As base64: the driver would send a bytea as twice its bytes. */
  async #add(fence: Fence, bodyId: number, { content, part, data }: Part): Promise<void> {
    await this.#turns.acquire()
    try {
      const added = await this.#db`
        WITH open AS (
          UPDATE dlq_bodies SET touched_at = now()
          WHERE body_id = ${bodyId} AND NOT complete AND ${this.#mayWrite(fence)} RETURNING body_id)
        INSERT INTO dlq_body_parts (body_id, content, part, data)
        SELECT body_id, ${content}, ${part}, decode(${data.toString('base64')}::text, 'base64') FROM open
        ON CONFLICT DO NOTHING`
      if (added.count === 0) await this.#requireEpoch(fence)
    } finally {
      this.#turns.release()
    }
  }

  /** Parts that do not give the body are removed. */
  async #complete(fence: Fence, bodyId: number, idsSha256: Buffer): Promise<void> {
    const db = this.#db
    const sha256Of = (content: Part['content']) => db`(
      SELECT sha256(string_agg(data, ''::bytea ORDER BY part)) FROM dlq_body_parts
      WHERE body_id = ${bodyId} AND content = ${content})`
    const completed = await db`
      UPDATE dlq_bodies SET complete = true
      WHERE body_id = ${bodyId} AND ${this.#mayWrite(fence)}
        AND (complete OR (sha256 = ${sha256Of('body')} AND ${idsSha256} = ${sha256Of('message_ids')}))`
    if (completed.count > 0) return
    await this.#requireEpoch(fence)
    await db`DELETE FROM dlq_bodies WHERE body_id = ${bodyId} AND NOT complete AND ${this.#mayWrite(fence)}`
    throw new BodyNotUploadedError(`the parts of the body ${bodyId} do not have its hash`)
  }

  async #requireEpoch(fence: Fence): Promise<void> {
    const [row] = await this.#db<{ may: boolean }[]>`SELECT ${this.#mayWrite(fence)} AS may`
    if (row?.may !== true) throw fenced(fence)
  }

  /** Without a lock: it only ends the work of a replaced owner early. What counts is decided behind the fence. */
  #mayWrite({ shard, epoch }: Fence) {
    return this.#db`NOT EXISTS (SELECT FROM shards WHERE shard = ${shard} AND epoch > ${epoch})`
  }
}

/**
 * What the row of a dead letter takes from its complete upload; `messageIds` is SQL. Rejects with BodyNotUploadedError.
 * Without a lock: who removes the dead letter locks it first and its upload then, and so does whoever refers to it.
 */
export async function uploadedBody(transaction: Transaction, batch: DeadBatch) {
  const { groupId, version, bodySha256 } = batch
  const [body] = await transaction<{ bodyId: number }[]>`
    SELECT body_id AS "bodyId" FROM dlq_bodies
    WHERE group_id = ${groupId} AND version = ${version} AND sha256 = ${bodySha256} AND complete`
  if (body === undefined) throw new BodyNotUploadedError(`grp:${groupId}:v${version} is not uploaded`)
  const { bodyId } = body
  const messageIds = transaction`(
    SELECT convert_from(string_agg(data, ''::bytea ORDER BY part), 'UTF8')::json FROM dlq_body_parts
    WHERE body_id = ${bodyId} AND content = 'message_ids')`
  return { bodyId, messageIds }
}

function partsOf(content: Part['content'], whole: Buffer): Part[] {
  const count = Math.ceil(whole.length / PART_BYTES)
  return Array.from({ length: count }, (_, part) => ({
    content,
    part,
    data: whole.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
  }))
}

function nameOf({ content, part }: Pick<Part, 'content' | 'part'>): string {
  return `${content} ${part}`
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
