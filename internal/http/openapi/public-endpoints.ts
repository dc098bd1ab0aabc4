import { DEFAULT_SOURCE_SIGNATURE_HEADER } from '../../domain/signatures/schemes.ts'
import type { Answer, Endpoint } from '../routes/route.ts'
import type { Schema } from '../schemas/shape.ts'

/** The endpoints that need no credential, in the form of the route table. */
export interface PublicEndpoint extends Endpoint {
  readonly description: string
  /** Schemas of request headers by name; none is required. */
  readonly headers?: Readonly<Record<string, Schema>>
  /** Whether `X-API-Key` may be sent. */
  readonly optionalKey?: boolean
  /** Answers beside the success that are no refusals. */
  readonly otherAnswers?: readonly Answer[]
}

export const publicEndpoints: readonly PublicEndpoint[] = [
  {
    method: 'POST',
    path: '/v1/ingest/{projectId}/{bufferId}',
    operationId: 'ingest',
    summary: 'Send a webhook',
    description:
      'Stores the JSON body in the buffer and answers once it is durable. Costs 1 credit per started KB of the payload; a duplicate of a message that is still buffered costs nothing. The buffer names further headers: those of the signature (`sourceVerification.scheme` and `signatureHeader`), that of the message id (`messageId.header`), and that of the group key (`groupKey.fallbackHeader`). The latter has no name of its own and is no parameter here: send it where `groupKey.mode` is `header`, or where the body lacks the key at `groupKey.path`.',
    headers: {
      'X-API-Key': {
        type: 'string',
        description:
          'An API key; optional, unless the buffer has `requireApiKey`. One that is sent must be valid and reach the project of the buffer.',
      },
      'X-Idempotency-Key': {
        type: 'string',
        description:
          'Message id when the body has no top-level `messageId`, unless the buffer has places of its own for it; at most 512 bytes.',
      },
      [DEFAULT_SOURCE_SIGNATURE_HEADER]: {
        type: 'string',
        description:
          'Lower-case hex HMAC-SHA256 of the body, where `sourceVerification.enabled` is true; `sourceVerification.signatureHeader` gives it another name, and `sourceVerification.scheme` another form.',
      },
    },
    optionalKey: true,
    body: { description: 'Any JSON, nested at most 64 levels deep.' },
    answers: { status: 202, schema: 'Accepted' },
    errors: [
      ...(['ingestBodyNotJson', 'bodyTooDeep', 'groupKeyMissing', 'groupKeyUnusable'] as const),
      ...(['messageIdUnusable', 'bufferDisabled', 'bufferNotInProject', 'signatureMissing'] as const),
      ...(['signatureInvalid', 'signatureStale', 'ingestKeyInvalid', 'ingestKeyMissing'] as const),
      ...(['ingestKeyForeign', 'bufferNotFound'] as const),
      ...(['bodyTimeout', 'bodyTooLarge', 'bodyPadded', 'bodyEncoded', 'insufficientCredits'] as const),
      ...(['internal', 'storageUnavailable', 'bufferOverShare', 'customerOverShare'] as const),
      ...(['databaseUnavailable', 'accountSuspended'] as const),
      'secretUnreadable',
      ...(['bodiesBusy', 'connectionsBusy'] as const),
    ],
  },
  {
    method: 'POST',
    path: '/v1/payments/{provider}',
    operationId: 'receiveNotification',
    summary: 'Notification of the payment provider',
    description:
      'For the payment provider alone, whose signature is the credential. What it names is read anew at the provider.',
    body: { description: 'What the provider sends, up to a megabyte.' },
    answers: { status: 200, schema: 'NotificationReceived' },
    errors: [
      ...(['notificationInvalid', 'routeNotFound', 'bodyTimeout', 'bodyTooLarge', 'bodyEncoded'] as const),
      ...(['notificationLater', 'providerUnavailable', 'bodiesBusy', 'connectionsBusy', 'internal'] as const),
    ],
  },
  {
    method: 'GET',
    path: '/health',
    operationId: 'readHealth',
    summary: 'Whether the service can work',
    description: 'Answers 200 while every dependency can be used, else 503.',
    answers: { status: 200, schema: 'Health' },
    otherAnswers: [{ status: 503, schema: 'Health' }],
    errors: ['internal'],
  },
  {
    method: 'GET',
    path: '/',
    operationId: 'readEntry',
    summary: 'What answers here, and where to go',
    description: 'Names the service, its version, and the paths to begin with.',
    answers: { status: 200, schema: 'ServiceEntry' },
    errors: ['internal'],
  },
]
