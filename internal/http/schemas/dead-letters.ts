import { MAX_LAST_RESPONSE_BYTES } from '../../domain/last-response.ts'
import { closed, count, flag, instant, integer, list, oneOf, orNull, text } from './shape.ts'

/** docs/reference/api.md, "Dead letters". */

export const dlqItemSchema = closed(
  'DlqItem',
  'A batch that could not be delivered.',
  {
    dlqId: text('Identifier of the dead letter.', { minLength: 1 }),
    customerId: text('Its customer.', { minLength: 1 }),
    projectId: text('Project of its buffer.', { minLength: 1 }),
    bufferId: text('Its buffer.', { minLength: 1 }),
    groupId: text('Identifier of the group over all buffers.', { minLength: 1 }),
    groupKey: text('Key of the group.', { minLength: 1 }),
    reason: oneOf('Why it is here.', ['max_retries_exceeded', 'non_retryable_error'], 'DlqReason'),
    lastError: text('Error of the last delivery attempt, automatic or manual.'),
    lastStatusCode: integer('HTTP status of the last attempt; 0 for network errors.', { minimum: 0 }),
    lastResponse: text(
      `Beginning of what the destination answered to the last attempt, at most ${MAX_LAST_RESPONSE_BYTES} bytes; absent when it answered nothing.`,
      { minLength: 1 },
    ),
    attempt: count('Zero-based index of the last automatic attempt.'),
    itemCount: integer('Items in the batch.', { minimum: 1 }),
    payloadSummary: closed('PayloadSummary', 'What is in it.', {
      messageIds: list('Message ids of its items.', text('A message id.')),
      firstPayloadPreview: text('First 500 characters of the first item payload.', { maxLength: 500 }),
    }),
    payloadStored: flag('Whether the full batch is stored and can be retried.'),
    batch: closed('SealedBatch', 'The batch as it was sealed.', {
      groupHash: text('Hash of the group, as in the delivered body.', { minLength: 1 }),
      segment: count('Segment of the group.'),
      firstItemAt: instant('Arrival of its first item'),
      lastActivityAt: instant('Arrival of its last item'),
      groupVersion: count('Version in the idempotency key.'),
      payloadBytes: count('Size of the stored item payloads, bytes.'),
    }),
    retryCount: count('Failed manual retries.'),
    lastRetryAt: orNull(instant('Last manual retry; null before the first')),
    createdAt: instant('Creation'),
  },
  ['lastResponse'],
)

export const deliveryBatchSchema = closed('DeliveryBatch', 'The body of a delivery.', {
  svc: closed('BatchSource', 'Where the batch comes from.', {
    customerId: text('The customer.', { minLength: 1 }),
    projectId: text('The project.', { minLength: 1 }),
    bufferId: text('The buffer.', { minLength: 1 }),
    groupKey: text('Key of the group.', { minLength: 1 }),
    groupHash: text('Hash of the group.', { minLength: 1 }),
    segment: count('Segment of the group.'),
  }),
  window: closed('BatchWindow', 'When its items arrived.', {
    firstItemAt: instant('Arrival of the first item'),
    lastActivityAt: instant('Arrival of the last item'),
    itemsCount: integer('Items in the batch.', { minimum: 1 }),
  }),
  items: list(
    'The items in the order of their arrival.',
    closed('BatchItem', 'One item.', {
      messageId: text('Message id: the sender’s own or a UUID.', { minLength: 1 }),
      receivedAt: instant('Arrival'),
      payload: { description: 'The JSON body of the webhook, byte for byte.' },
    }),
  ),
})
