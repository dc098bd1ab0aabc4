/**
 * The Buffer configuration as one JSON Schema (docs/reference/buffers.md, "Fields"; docs/architecture/protocol.md,
 * "One schema"): the admin API's validators, the OpenAPI 3.0.3 document and the CRD's structural schema are derived
 * from it. It therefore uses only keywords that all three know: no references, no type lists, no conditionals.
 *
 * Rules that a schema of that kind cannot say stand in `buffer-rules.ts`. Upper bounds keep one buffer from costing
 * more than a shard can hold.
 */
import { HEADER_VALUE_MAX_LENGTH, HEADERS_MAX_COUNT } from './header-names.ts'
import { bodyPath, headerName, identifier, integer, object, type Schema, secret } from './schema-parts.ts'
import {
  DEFAULT_SCHEME,
  DEFAULT_SOURCE_SIGNATURE_HEADER,
  DEFAULT_TOLERANCE_SECONDS,
  signatureSchemes,
} from './signatures/schemes.ts'

/** One week: the longest window, and far below what a timer can hold. */
const WEEK_MS = 604_800_000
const DAY_MS = 86_400_000

/** Installation maxima (docs/architecture/protocol.md, "Groups"): 10,000 items and 16 MB (16,777,216 bytes) a batch. */
export const MAX_BATCH_ITEMS = 10_000
export const MAX_BATCH_BYTES = 16_777_216

export const DEFAULT_IDEMPOTENCY_HEADER = 'x-idempotency-key'
export const DEFAULT_SIGNATURE_HEADER = 'x-svc-signature'

const groupKey = object(
  'GroupKey',
  'Where the group key of a webhook is read.',
  {
    mode: {
      title: 'GroupKeyMode',
      type: 'string',
      description:
        '"jsonpath" reads the key from the body, then from the fallback header; "header" from the header only.',
      enum: ['jsonpath', 'header'],
    },
    path: bodyPath('Path of the key in the JSON body'),
    fallbackHeader: headerName(
      'Name of the request header that holds the key when the path finds none; none that carries credentials or the signature.',
    ),
  },
  { required: ['mode'] },
)

const messageId = object(
  'MessageIdPlaces',
  'Where the message id of a webhook is looked for first; needs path or header. Without it, or when neither holds an id, it is the messageId of the body, then the header X-Idempotency-Key.',
  {
    path: bodyPath('Path of the id in the JSON body'),
    header: headerName(
      'Name of the request header that holds the id when the path finds none; none that carries credentials or the signature.',
    ),
  },
)

const batch = object(
  'Batch',
  'When a group is delivered: as soon as any of these is reached.',
  {
    maxItems: integer('Items in a group, and the most in one delivery.', 1, MAX_BATCH_ITEMS, 50),
    maxBytes: integer('Payload bytes in a group.', 1, MAX_BATCH_BYTES, 262_144),
    idleTimeoutMs: integer('Milliseconds without a new item.', 100, WEEK_MS, 5000),
    maxWaitFromFirstMs: integer('Milliseconds since the oldest item.', 100, WEEK_MS, 15_000),
  },
  { default: {} },
)

const overflow = object(
  'Overflow',
  'When new items of a group go to its next segment.',
  {
    maxGroupItems: integer('Items in one segment.', 1, 1_000_000, 2000),
    maxGroupBytes: integer('Payload bytes in one segment.', 1, 1_073_741_824, 5_242_880),
    policy: {
      title: 'OverflowPolicy',
      type: 'string',
      description: 'What happens to a full segment.',
      enum: ['flush_early_then_continue'],
      default: 'flush_early_then_continue',
    },
  },
  { default: {} },
)

const signing = object(
  'Signing',
  'Signature of each delivery: lower-case hex HMAC-SHA256 of the raw body.',
  {
    type: {
      title: 'SigningType',
      type: 'string',
      description: 'Kind of signature.',
      enum: ['hmac-sha256'],
      default: 'hmac-sha256',
    },
    secret: secret('Secret of the HMAC, 1 to 1,024 characters.'),
    header: headerName('Name of the request header that carries the signature.', DEFAULT_SIGNATURE_HEADER),
  },
  { required: ['secret'] },
)

const delivery = object(
  'Delivery',
  'The destination of the batches.',
  {
    url: {
      type: 'string',
      description: 'Address of the destination: an http or https URL without credentials.',
      format: 'uri',
      minLength: 1,
      maxLength: 2048,
      pattern: '^[Hh][Tt][Tt][Pp][Ss]?://',
    },
    method: {
      title: 'DeliveryMethod',
      type: 'string',
      description: 'HTTP method of a delivery.',
      enum: ['POST', 'PUT'],
      default: 'POST',
    },
    headers: {
      title: 'DeliveryHeaders',
      type: 'object',
      description: 'Extra headers of every delivery.',
      maxProperties: HEADERS_MAX_COUNT,
      additionalProperties: {
        type: 'string',
        description: 'Value of the header: printable Latin-1 characters.',
        maxLength: HEADER_VALUE_MAX_LENGTH,
      },
    },
    idempotencyHeader: headerName(
      'Name of the request header that carries grp:<groupId>:v<version>.',
      DEFAULT_IDEMPOTENCY_HEADER,
    ),
    signing,
  },
  { required: ['url'] },
)

const backoff = object(
  'Backoff',
  'Delay before retry n: initialMs * multiplier^(n-1), at most maxMs.',
  {
    initialMs: integer('Milliseconds before the first retry; at most maxMs.', 0, DAY_MS, 1000),
    maxMs: integer('The longest delay in milliseconds.', 0, DAY_MS, 60_000),
    multiplier: {
      type: 'number',
      description: 'Growth of the delay from one retry to the next.',
      minimum: 1,
      maximum: 100,
      default: 2,
    },
  },
  { default: {} },
)

const throughput = object(
  'Throughput',
  'Attempts of a batch and the pace of a group.',
  {
    maxAttempts: integer('Delivery attempts of a batch, the first included.', 1, 5, 3),
    backoff,
    minDelayBetweenFlushMs: integer('Least milliseconds between two batches of a group.', 0, DAY_MS, 0),
    maxConcurrencyPerGroup: integer(
      'Batches of one group in delivery at a time; above 1 order is only that of first attempts.',
      1,
      100,
      1,
    ),
  },
  { default: {} },
)

const sourceVerification = object(
  'SourceVerification',
  'Verification of the signature of incoming webhooks.',
  {
    enabled: {
      type: 'boolean',
      description: 'Whether webhooks without a valid signature are refused; needs signingSecret.',
      default: false,
    },
    scheme: {
      title: 'SignatureScheme',
      type: 'string',
      description: `How senders sign, by the name of the provider; "hex" is the lower-case hex HMAC-SHA256 of the body. "${DEFAULT_SCHEME}" when absent.`,
      enum: signatureSchemes,
    },
    signingSecret: secret(
      'Secret of the HMAC, 1 to 1,024 characters; of standard-webhooks base64, with or without whsec_ in front.',
    ),
    previousSecret: secret(
      'A second secret whose signatures are good too, while a sender changes its secret.',
    ),
    signatureHeader: headerName(
      `Name of the request header with the signature; with another scheme than hex, ${DEFAULT_SOURCE_SIGNATURE_HEADER} means the header of that scheme.`,
      DEFAULT_SOURCE_SIGNATURE_HEADER,
    ),
    toleranceSeconds: {
      type: 'integer',
      description: `Seconds that the time stamp of a signature may be away from now, either way; of stripe, slack and standard-webhooks. ${DEFAULT_TOLERANCE_SECONDS} when absent.`,
      minimum: 1,
      maximum: 86_400,
    },
    algorithm: {
      title: 'SourceAlgorithm',
      type: 'string',
      description: 'Stored with the buffer; verification always uses HMAC-SHA256.',
      enum: ['hmac-sha256', 'hmac-sha1'],
      default: 'hmac-sha256',
    },
  },
  { default: {} },
)

const analytics = object(
  'Analytics',
  'What is recorded about deliveries.',
  {
    sampleDeliveryLogs: {
      type: 'number',
      description: 'Fraction of successful deliveries that get a log event; failed ones always do.',
      minimum: 0,
      maximum: 1,
      default: 0.05,
    },
  },
  { default: {} },
)

/** What a caller configures and a PATCH may change. */
export const bufferConfigSchema: Schema = object(
  'Buffer',
  'Configuration of a buffer.',
  {
    name: {
      type: 'string',
      description: 'Name of the buffer for people: 1 to 256 characters, none of them a control character.',
      minLength: 1,
      maxLength: 256,
      pattern: '^[^\\x00-\\x1f\\x7f]+$',
    },
    enabled: {
      type: 'boolean',
      description: 'Whether the buffer takes and delivers webhooks.',
      default: true,
    },
    groupKey,
    messageId,
    batch,
    overflow,
    delivery,
    throughput,
    dlqPauseThreshold: integer('Consecutive dead-lettered batches that disable the buffer.', 1, 10, 3),
    sourceVerification,
    requireApiKey: {
      type: 'boolean',
      description: 'Whether a webhook without X-API-Key is refused. It is not when absent.',
    },
    analytics,
  },
  { required: ['name', 'groupKey', 'delivery'] },
)

/** Body of a creation: the identifiers first, then the configuration. */
export const bufferCreateSchema: Schema = object(
  'Buffer',
  'A buffer to create.',
  {
    bufferId: identifier(
      'Identifier of the buffer, unique in the installation, also among deleted ones of other customers',
    ),
    projectId: identifier('Project that the buffer belongs to'),
    customerId: identifier('Owner of the buffer; only the authenticated customer is allowed'),
    ...bufferConfigSchema.properties,
  },
  { required: ['bufferId', 'projectId', 'name', 'groupKey', 'delivery'] },
)

const counter = (description: string): Schema => ({ type: 'integer', description, minimum: 0 })

/** A stored buffer as the admin API answers it. */
export const bufferSchema: Schema = object(
  'Buffer',
  'A stored buffer.',
  {
    ...bufferCreateSchema.properties,
    consecutiveDlqCount: counter('Batches that went to the dead letter queue since the last delivered one.'),
    pausedReason: {
      type: 'string',
      description: 'Why the service disabled the buffer by itself; absent when it did not.',
      enum: ['consecutive_dead_letters'],
    },
    pausedAt: counter(
      'When the service disabled the buffer by itself, Unix epoch milliseconds; absent when it did not.',
    ),
    createdAt: counter('Unix epoch milliseconds.'),
    updatedAt: counter('Unix epoch milliseconds.'),
  },
  {
    required: [
      ...['bufferId', 'projectId', 'customerId', 'name', 'enabled', 'groupKey', 'batch', 'overflow'],
      ...['delivery', 'throughput', 'dlqPauseThreshold', 'sourceVerification', 'analytics'],
      ...['consecutiveDlqCount', 'createdAt', 'updatedAt'],
    ],
  },
)
