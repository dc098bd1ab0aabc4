/**
 * The body of a batch: a join of the stored elements of its items (docs/architecture/protocol.md, "Batch bodies").
 * Nothing of a payload is parsed or written again, so every attempt sends the same bytes.
 */
import { hash } from 'node:crypto'
import type { Buffer as BufferResource } from '../../domain/model.ts'
import { type ItemView, readItem } from '../../domain/pack.ts'
import type { LiveItem } from '../held/live.ts'
import type { BytesOf } from '../held/payload-cache.ts'

/** Version of this join. A seal names the one that built its body; what is built again follows the same one. */
export const SERIALIZER = 1

/** A newer version of the program sealed the batch: its body cannot be built here, and nothing may take its place. */
export class UnknownSerializerError extends Error {
  override readonly name = 'UnknownSerializerError'
}

export interface BatchBody {
  readonly body: Buffer
  readonly sha256: Buffer
  /** First 16 bytes of SHA-256 over the item ids in order. */
  readonly itemsHash: Buffer
  readonly firstItemAt: number
  readonly lastActivityAt: number
}

type BatchOwner = Pick<BufferResource, 'customerId' | 'projectId' | 'bufferId'>

/** What builds the bodies of seals that name this version. Throws UnknownSerializerError. */
export function builderOf(serializer: number): typeof buildBody {
  if (serializer !== SERIALIZER)
    throw new UnknownSerializerError(
      `serializer ${serializer} is not known: this version knows ${SERIALIZER}`,
    )
  return buildBody
}

function viewsOf(items: readonly LiveItem[], data: BytesOf): ItemView[] {
  return items.map((item) => readItem(data(item.message), item.offset))
}

export function buildBody(
  owner: BatchOwner,
  groupId: string,
  segment: number,
  items: readonly LiveItem[],
  data: BytesOf,
): BatchBody {
  const views = viewsOf(items, data)
  const firstItemAt = Math.min(...views.map((view) => view.receivedAt))
  const lastActivityAt = Math.max(...views.map((view) => view.receivedAt))
  const { customerId, projectId, bufferId } = owner
  const svc = { customerId, projectId, bufferId, groupKey: views[0]!.groupKey, groupHash: groupId, segment }
  const window = { firstItemAt, lastActivityAt, itemsCount: items.length }
  const head = `{"svc":${JSON.stringify(svc)},"window":${JSON.stringify(window)},"items":[`
  const body = join(head, items, views, data)
  return {
    body,
    sha256: hash('sha256', body, 'buffer'),
    itemsHash: hashOfItems(views),
    firstItemAt,
    lastActivityAt,
  }
}

function join(head: string, items: readonly LiveItem[], views: ItemView[], data: BytesOf): Buffer {
  const headBytes = Buffer.byteLength(head)
  let size = headBytes + views.length + 1
  for (const view of views) size += view.elementLength
  const body = Buffer.allocUnsafe(size)
  let at = body.write(head, 0)
  views.forEach((view, index) => {
    if (index > 0) body[at++] = 0x2c
    const message = data(items[index]!.message)
    at += message.copy(body, at, view.elementOffset, view.elementOffset + view.elementLength)
  })
  at += body.write(']}', at)
  if (at !== size) throw new Error(`a body of ${size} bytes came out with ${at}`)
  return body
}

function hashOfItems(views: ItemView[]): Buffer {
  return hash('sha256', views.map((view) => view.itemId).join(''), 'buffer').subarray(0, 16)
}

/** What a dead letter tells of its events without the whole body. */
export function summarize(items: readonly LiveItem[], data: BytesOf) {
  const views = viewsOf(items, data)
  const first = views[0]!
  const message = data(items[0]!.message)
  // 500 characters take at most 2,000 bytes of UTF-8.
  const preview = message.toString(
    'utf8',
    first.payloadOffset,
    Math.min(first.end - 1, first.payloadOffset + 2_004),
  )
  return {
    groupKey: first.groupKey,
    messageIds: views.map((view) => view.messageId),
    firstPayloadPreview: preview.slice(0, 500),
    payloadBytes: views.reduce((sum, view) => sum + view.payloadBytes, 0),
  }
}
