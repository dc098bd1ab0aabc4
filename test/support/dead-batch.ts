import { createHash, randomUUID } from 'node:crypto'
import type { DeadBatch } from '../../internal/shard/ports.ts'
import type { TestBuffer } from './rows.ts'

/** A batch of one item that failed; `given` replaces what a test cares about. */
export function deadBatch(buffer: TestBuffer, given: Partial<DeadBatch> = {}): DeadBatch {
  const body = given.body ?? Buffer.from(`{"items":[{"payload":"${randomUUID()}"}]}`)
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
