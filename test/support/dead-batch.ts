import { createHash, randomUUID } from 'node:crypto'
import type { DeadBatch } from '../../internal/shard/ports.ts'
import type { TestBuffer } from './rows.ts'

/** A batch of one item that failed; `given` replaces what a test cares about. */
export function deadBatch(buffer: TestBuffer, given: Partial<DeadBatch> = {}): DeadBatch {
  const body = given.body ?? bodyOf(buffer)
  return {
    dlqId: randomUUID(),
    bufferUid: buffer.uid,
    customerId: buffer.customerId,
    projectId: buffer.projectId,
    bufferId: buffer.bufferId,
    groupId: `group-${randomUUID()}`,
    groupKey: 'key',
    version: 7,
    reason: 'max_retries_exceeded',
    lastError: 'HTTP 500',
    lastStatusCode: 500,
    lastResponse: null,
    attempt: 2,
    itemCount: 1,
    messageIds: ['message-1'],
    firstPayloadPreview: '{"a":1}',
    segment: 0,
    firstItemAt: 1_700_000_000_001,
    lastActivityAt: 1_700_000_000_002,
    payloadBytes: 7,
    body,
    bodySha256: createHash('sha256').update(body).digest(),
    createdAt: 1_700_000_000_003,
    ...given,
  }
}

/** A delivery batch (docs/reference/buffers.md, "Deliveries") with a payload of its own. */
function bodyOf({ customerId, projectId, bufferId }: TestBuffer): Buffer {
  const window = { firstItemAt: 1_700_000_000_001, lastActivityAt: 1_700_000_000_002, itemsCount: 1 }
  const svc = { customerId, projectId, bufferId, groupKey: 'key', groupHash: 'hash', segment: 0 }
  const item = { messageId: 'message-1', receivedAt: window.firstItemAt, payload: randomUUID() }
  return Buffer.from(JSON.stringify({ svc, window, items: [item] }))
}
