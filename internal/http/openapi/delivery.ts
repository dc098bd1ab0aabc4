import { createHmac } from 'node:crypto'
import { DEFAULT_IDEMPOTENCY_HEADER, DEFAULT_SIGNATURE_HEADER } from '../../domain/buffer-schema.ts'
import { named, type Schema } from '../schemas/shape.ts'
import { BATCH, BUFFER } from './examples/account.ts'

/** The request that a destination gets (docs/reference/buffers.md, "Deliveries"), as the callback of a creation. */

const DESCRIPTION = `One signed request for each batch of a group; PUT where \`delivery.method\` says so. The headers of
\`delivery.headers\` come with it. The service waits 10 seconds for the status of the answer, connecting included. A
broken connection, or no answer in time, is a failed attempt like a 5xx.`

const HEADERS: Readonly<Record<string, { required: boolean; description: string; example: string }>> = {
  [DEFAULT_IDEMPOTENCY_HEADER]: {
    required: true,
    description:
      'Names this body for ever: `grp:<groupId>:v<version>`. Every attempt has the same one. `delivery.idempotencyHeader` gives it another name.',
    example: 'grp:LPJNul-wow4m6DsqxbninA:v17',
  },
  [DEFAULT_SIGNATURE_HEADER]: {
    required: false,
    description:
      'Lower-case hex HMAC-SHA256 of the raw body with `delivery.signing.secret`; sent where `delivery.signing` is configured. `delivery.signing.header` gives it another name.',
    example: createHmac('sha256', BUFFER.delivery.signing.secret).update(JSON.stringify(BATCH)).digest('hex'),
  },
  'user-agent': { required: true, description: '`Penstock/<version>`.', example: 'Penstock/0.1.0' },
}

export const deliveryCallback: Schema = {
  '{$request.body#/delivery/url}': {
    post: {
      operationId: 'deliverBatch',
      summary: 'A batch is delivered to its destination',
      description: DESCRIPTION,
      tags: ['Buffers'],
      security: [],
      parameters: Object.entries(HEADERS).map(([name, { required, description, example }]) => ({
        name,
        in: 'header',
        required,
        description,
        schema: { type: 'string' },
        example,
      })),
      requestBody: {
        required: true,
        content: { 'application/json': { schema: named('DeliveryBatch'), example: BATCH } },
      },
      responses: {
        '2XX': { description: 'The batch is delivered. The body of the answer is not used.' },
        '4XX': { description: 'Not retried, also 408 and 429: the batch becomes a dead letter at once.' },
        default: {
          description:
            'Retried, at most `throughput.maxAttempts` attempts in all; then the batch becomes a dead letter. Redirects are not followed.',
        },
      },
    },
  },
}
