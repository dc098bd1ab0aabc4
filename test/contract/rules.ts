import type { Row } from './row.ts'

/** The reference's other tables: each row with the tests that show it. */

type Rule = readonly [row: string, ...tests: readonly string[]]

const tables: Readonly<Record<string, readonly Rule[]>> = {
  'Processing model': [
    ['a group goes out at maxItems', 'a group is delivered when it holds maxItems items'],
    ['… at maxBytes', 'a group is delivered when its payloads total maxBytes bytes'],
    ['… when idle', 'a group is delivered when no item arrived for idleTimeoutMs'],
    ['… after maxWaitFromFirstMs', 'a group is delivered when its oldest item waited maxWaitFromFirstMs'],
    [
      'maxItems is the most of one delivery',
      'a group is delivered in batches of at most maxItems and maxBytes',
    ],
    [
      'overflow goes to a new segment',
      'goes on in a new segment each time maxGroupItems is reached',
      'goes on in a new segment each time maxGroupBytes is reached',
    ],
    ['4xx is not retried', 'a batch that fails for good is a dead letter at once when it is answered 4xx'],
    ['10 s for an answer', 'a destination that does not answer in time fails the attempt after 10 s'],
    ['backoff', 'is sent again after initialMs * multiplier^(n-1), at most maxMs'],
    ['DLQ after the last attempt', 'is a dead letter with all its fields after maxAttempts attempts'],
    ['auto-pause', 'is disabled with the third in a row; enabled again it starts counting anew'],
    [
      'message id: body, header, UUID',
      'names each item as its sender did: by messageId, by header, or by a UUID',
      'a message id may come in the header, and the body goes before it',
    ],
    ['accepted again once delivered', 'a message id is accepted again once its item is delivered'],
    [
      'group key by path, fallback header, header',
      'is read from the body by its path, and from the fallback header when that yields nothing',
      'is read from the header alone in header mode',
    ],
  ],
  'States, subscription': [
    ['ACTIVE to CANCELLING', 'cancelled for the end of its period is cancelling, when it was ACTIVE'],
    ['CANCELLING and CANCELLED stay, 409', 'cancelled for the end of its period is refused a second time'],
    ['immediate: over', 'cancelled now is over, when it was ACTIVE'],
    ['immediate: CANCELLED stays, 409', 'cancelled now is refused a second time'],
  ],
  'States, buffer': [
    [
      'disabled by its dead letters',
      'a buffer whose batches go to the dead letter queue is disabled with the third',
    ],
    [
      'disabled by a PATCH',
      'holds them while it is disabled, refuses new ones, and goes on when it is enabled',
    ],
    ['enabled again: the count is 0', 'buffers change resets the count when a disabled buffer is enabled'],
  ],
  'States, DLQ item': [
    [
      'exhausted or refused',
      'after maxAttempts attempts',
      'is a dead letter at once when it is answered 4xx',
    ],
    [
      'retried with success: removed',
      'under their own key to the present configuration, and removes the item',
    ],
    [
      'retried in vain: kept, counted',
      'dlq: manual retry that fails answers all of it, keeps the item and counts',
    ],
    ['retry beside a retry', 'dead letters over HTTP answer 409 while another retry runs'],
    ['retry without the batch', 'dead letters over HTTP without their batch answer 409'],
    ['deleted with its batch', 'removes an item with its batch, once'],
  ],
  'States, API key': [
    ['revoked at once, 409 again', 'stops a revoked key at once, and answers 409 when it is revoked again'],
  ],
  Authentication: [
    ['an API key', 'requests to the management API'],
    ['an ID token', 'signs a person up with the first token, who then does all that an owner may'],
    ['both: the key', 'uses the key when both come, also when the key is bad'],
    ['format of a key, secret shown once', 'creates, lists and revokes API keys within the own reach'],
    [
      'revoked or unknown: 401',
      'requests to the management API credentials answers 401 for a key that is none',
    ],
    ['none: 401', 'requests to the management API credentials answers 401 without one'],
    [
      'unverified e-mail: 403',
      'refuses a password account without a verified e-mail address until it is verified',
    ],
    ['any role may ingest', 'ingest with an X-API-Key takes a key of the account, of any role'],
    ['source verification', 'ingest with source verification takes only the HMAC-SHA256 of the raw bytes'],
    [
      'no role: 403 and message',
      'requests to the management API order of checks gives each action to its roles',
    ],
    ['a key is no broader than its maker', 'creates, lists and revokes API keys within the own reach'],
  ],
  Events: [
    ['trigger: a flush condition', 'a group is delivered when it holds maxItems items'],
    ['trigger: retry and test', 'the clone its own batches, the test one item'],
    ['method and target, headers', 'is a PUT with every configured header, under its own idempotency header'],
    ['idempotency header by default', 'is a POST of JSON under the default idempotency header, and unsigned'],
    ['signature', 'is signed under x-svc-signature by default'],
    ['body', 'carries exactly the documented body, with every payload as its sender wrote it'],
    ['any 2xx', 'is acknowledged by a 2xx, whatever becomes of the body behind it'],
    ['failure: retried, then DLQ', 'is sent again as the same bytes under the same key until it is accepted'],
  ],
  Errors: [
    ['body of an error', 'the check of answers refuses a refusal with more'],
    [
      '429 adds credits, required and message',
      'answers 429 with balance and price, and still knows duplicates',
    ],
    ['500', 'answers 500, tells nothing and gives the credits back when the inbox breaks'],
  ],
  Limits: [
    ['1 credit a started KB', 'the credits of a customer pay one for each started KB of the payload as JSON'],
    ['duplicates cost nothing', 'the credits of a customer come back for duplicates and for nothing else'],
    ['10 active API keys', 'documented limits 10 active API keys'],
    ['100 characters in the name of a key', 'documented limits 100 characters'],
    ['batch.maxItems', 'documented limits batch.maxItems'],
    ['batch.maxBytes', 'documented limits batch.maxBytes'],
    ['batch.idleTimeoutMs', 'documented limits batch.idleTimeoutMs'],
    ['batch.maxWaitFromFirstMs', 'documented limits batch.maxWaitFromFirstMs'],
    ['overflow.maxGroupItems', 'documented limits overflow.maxGroupItems'],
    ['overflow.maxGroupBytes', 'documented limits overflow.maxGroupBytes'],
    ['throughput.maxAttempts', 'documented limits throughput.maxAttempts'],
    [
      'backoff',
      'documented limits throughput.backoff.initialMs',
      'documented limits throughput.backoff.maxMs',
      'documented limits throughput.backoff.multiplier',
    ],
    ['dlqPauseThreshold', 'documented limits dlqPauseThreshold'],
    [
      'destination timeout 10 s',
      'a destination that does not answer in time fails the attempt after 10 s',
      'a manual retry against a destination that hangs ends after 10 s',
    ],
    ['DLQ list limit', 'documented limits limit of GET /v1/dlq'],
    ['transactions limit', 'documented limits limit of GET /v1/admin/credits/transactions'],
    ['invoices limit', 'documented limits limit of GET /v1/admin/invoices'],
    ['analytics days', 'the series has as many days as asked, 7 by default'],
    ['credit grant', 'documented limits amount of a grant'],
    ['ID token lifetime 1 hour', 'ID tokens of a real provider end an hour after they were issued'],
  ],
  Versioning: [
    ['every path but the health check carries /v1', 'the OpenAPI document carries /v1 in every path but'],
    ['OpenAPI 3.0.3, version 1.0.0', 'the OpenAPI document is OpenAPI 3.0.3 of version 1.0.0'],
  ],
}

export const ruleRows: readonly Row[] = Object.entries(tables).flatMap(([table, rules]) =>
  rules.map(([row, ...tests]): Row => ({ table, row, shownBy: { tests } })),
)
