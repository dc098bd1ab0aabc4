/** The table of docs/reference/errors.md: what each refusal of the registry means, and what a caller does about it. */

import { LEASE_MS } from '../../internal/dlq/retry.ts'
import { type ErrorEntry, type ErrorKey, errors } from '../../internal/domain/errors.ts'
import { MAX_GROUP_KEY_BYTES, MAX_MESSAGE_ID_BYTES } from '../../internal/domain/extract.ts'
import { HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '../../internal/http/listener.ts'
import { code, grouped, table } from './table.ts'

interface Advice {
  readonly means: string
  readonly action: string
}

/** Entries of the registry by the resource that they are about, in the order of the page. */
export const errorGroups = {
  ingest: [
    ...(['ingestBodyNotJson', 'bodyTooDeep', 'groupKeyMissing', 'groupKeyUnusable'] as const),
    ...(['messageIdUnusable', 'bufferDisabled', 'bufferNotInProject', 'signatureMissing'] as const),
    ...(['signatureInvalid', 'signatureStale', 'ingestKeyInvalid', 'ingestKeyMissing'] as const),
    ...(['ingestKeyForeign', 'insufficientCredits'] as const),
    ...(['storageUnavailable', 'bufferOverShare', 'customerOverShare', 'bodyPadded'] as const),
    'secretUnreadable',
  ],
  requests: [
    ...(['invalidRequest', 'bodyNotJson', 'credentialMissing', 'keyInvalid', 'tokenInvalid'] as const),
    ...([
      'emailNotVerified',
      'accountAnonymous',
      'accountSuspended',
      'roleMissing',
      'customerForeign',
      'projectForeign',
    ] as const),
    ...(['routeNotFound', 'bodyTimeout', 'bodyTooLarge', 'bodyEncoded', 'internal'] as const),
    ...(['databaseUnavailable', 'identityUnavailable', 'bodiesBusy', 'connectionsBusy'] as const),
    ...(['requestRate', 'signUpRate'] as const),
  ],
  resources: [
    ...(['customerNotFound', 'customerUnknown', 'customerExists', 'projectNotFound'] as const),
    ...(['projectUnknown', 'projectExists', 'projectHasBuffers', 'bufferNotFound'] as const),
    ...(['bufferExists', 'cloneFailed', 'customerLimit', 'projectLimit', 'bufferLimit'] as const),
    ...(['idLimit', 'testRate'] as const),
  ],
  deadLetters: [
    ...(['deadLetterNotFound', 'deadLetterForeign', 'payloadUnavailable', 'retryInProgress'] as const),
    ...(['deliveryFailed'] as const),
  ],
  apiKeys: [
    ...([
      'apiKeyNotFound',
      'apiKeyRoleHigher',
      'apiKeyRevoked',
      'apiKeyLimit',
      'roleTooHigh',
      'projectsTooBroad',
    ] as const),
  ],
  billing: [
    ...(['currencyUnsupported', 'packNotFound', 'packUnavailable', 'subscriptionRequired'] as const),
    ...(['planNotFound', 'planInactive', 'planWithoutCheckout', 'subscriptionNotFound'] as const),
    ...(['subscriptionCancelling', 'subscriptionCancelled', 'invoiceNotFound', 'invoiceForeign'] as const),
    ...(['subscriptionExists', 'portalNotFound', 'providerUnconfigured', 'providerUnavailable'] as const),
    ...(['notificationInvalid', 'notificationLater'] as const),
  ],
} as const satisfies Record<string, readonly ErrorKey[]>

/** Schemas of the bodies of refusals. */
export const refusalBodies = ['Error', 'InsufficientCredits', 'DeliveryFailed'] as const

export type ErrorGroup = keyof typeof errorGroups

const ADVICE: Record<ErrorKey, Advice> = {
  ingestBodyNotJson: {
    means: 'The body is not JSON in UTF-8. The answer is an HTML page, not JSON.',
    action: 'Send valid JSON in UTF-8, without a byte order mark.',
  },
  bodyTooDeep: {
    means: 'Objects and arrays of the body stand inside one another too deep.',
    action: 'Send a flatter body.',
  },
  groupKeyMissing: {
    means: 'Neither the path nor the fallback header of the buffer yields a group key.',
    action:
      'Send the key, or change `groupKey` of the buffer. `GET /v1/admin/buffers/{bufferId}` shows the path and the header.',
  },
  groupKeyUnusable: {
    means: `The group key is longer than ${grouped(MAX_GROUP_KEY_BYTES)} bytes or has the character U+0000. The text says which.`,
    action: 'Send a shorter key without that character.',
  },
  messageIdUnusable: {
    means: `The message id is longer than ${grouped(MAX_MESSAGE_ID_BYTES)} bytes or has the character U+0000. The text says which.`,
    action: 'Send a shorter id without that character.',
  },
  bufferDisabled: {
    means: 'The buffer was disabled, by a caller or by the automatic pause.',
    action:
      'Read the buffer: a `pausedReason` says that its destination has to be mended first. Enable it by `PATCH /v1/admin/buffers/{bufferId}` with `{"enabled":true}`, then send the webhook again.',
  },
  bufferNotInProject: {
    means: 'The buffer exists, but in another project than the one in the path.',
    action: 'Put the project into the path that `GET /v1/admin/buffers/{bufferId}` shows.',
  },
  signatureMissing: {
    means: 'The buffer verifies its source, and the signature header is missing or empty.',
    action: '[Sign](../guide/senders.md#sign-your-webhooks) the webhook, or turn source verification off.',
  },
  signatureInvalid: {
    means: 'The signature does not fit the bytes of the body and the secret of the buffer.',
    action:
      'Compare the secret. [Sign](../guide/senders.md#sign-your-webhooks) the exact bytes that are sent, in the way that `sourceVerification.scheme` names.',
  },
  signatureStale: {
    means:
      'The signature is good, but its time stamp is more than `sourceVerification.toleranceSeconds` away from the clock of the service.',
    action: 'Set the clock of the sender, or sign the webhook anew when it is sent again.',
  },
  ingestKeyInvalid: {
    means: 'The `X-API-Key` of the webhook is unknown or revoked.',
    action: 'Send a valid key, or none where the buffer does not have `requireApiKey`.',
  },
  ingestKeyMissing: {
    means:
      'The buffer has `requireApiKey`, and the webhook has no `X-API-Key`, or one of another account or without its project.',
    action: 'Send a key of the account that reaches the project of the buffer, of any role.',
  },
  ingestKeyForeign: {
    means: 'The `X-API-Key` belongs to another customer, or is limited to other projects.',
    action: 'Send a key that reaches the buffer, or none where the buffer does not have `requireApiKey`.',
  },
  insufficientCredits: {
    means: 'The balance does not cover the webhook. The body adds `credits`, `required` and `message`.',
    action:
      'Keep the webhook. Buy a [pack](../guide/billing.md), or on the local instance `POST /v1/admin/credits/add`. Then send it again.',
  },
  storageUnavailable: {
    means: 'The webhook could not be stored, or the broker did not confirm it. Nothing was charged.',
    action: 'Send it again after `Retry-After` seconds, with the same message id.',
  },
  bufferOverShare: {
    means: 'The buffer holds its whole share of a shard. Other buffers go on. Nothing was charged.',
    action:
      'Keep the webhook, and send it again later. See why the buffer does not empty: it is disabled, or its destination fails.',
  },
  customerOverShare: {
    means: 'All buffers of the account together hold its whole share of a shard. Nothing was charged.',
    action:
      'Keep the webhook, and send it again later. See which of your buffers do not empty: they are disabled, or their destinations fail.',
  },
  bodyPadded: {
    means: 'Most of the body is blanks, escapes or repeated members, which are stored and not charged.',
    action: 'Send JSON without indentation, and characters as they are instead of `\\u` escapes.',
  },
  bodiesBusy: {
    means:
      'The process holds as many bytes of request bodies as `PENSTOCK_MAX_BODIES_BYTES` allows, or those of the customer alone fill its share. Nothing was stored or charged.',
    action: 'Send it again after `Retry-After` seconds.',
  },
  connectionsBusy: {
    means:
      'The process has more connections than `PENSTOCK_MAX_CONNECTIONS`, and none of them has idled for a second. This one is closed.',
    action: 'Send it again after `Retry-After` seconds. Use each connection for many requests.',
  },
  invalidRequest: {
    means: 'A parameter or a field of the body is not valid. The text names each.',
    action: 'Correct what the text names.',
  },
  bodyNotJson: { means: 'The body is not JSON in UTF-8.', action: 'Send valid JSON.' },
  credentialMissing: {
    means: 'The request has neither `X-API-Key` nor an ID token.',
    action:
      'Send `X-API-Key` with a key. The first start of the local instance leaves one in `.penstock/owner-key`.',
  },
  keyInvalid: {
    means: 'The API key is unknown, malformed or revoked.',
    action:
      'Send a key that is active: `svk_` and 48 hex digits. A secret that was lost cannot be read again; have another key made.',
  },
  tokenInvalid: {
    means: 'The ID token is malformed, expired, too old, not for this service, or tokens are off.',
    action: 'Sign in again, or use an API key.',
  },
  accountAnonymous: {
    means: 'The ID token is of a guest whom the identity provider did not ask to sign in.',
    action: 'Sign in with an account.',
  },
  secretUnreadable: {
    means:
      'The secret of the buffer was encrypted with a key that the installation lost, or its text is damaged. It shows as `[unreadable]`, and what is buffered is held.',
    action: 'Set the secret anew by a PATCH, or have the key configured again. Then send the webhook again.',
  },
  accountSuspended: {
    means:
      'Whoever runs the installation suspended the account: webhooks, changes and checkouts are refused, and deliveries are held. Reads work, and so do the revocation of a key and the cancellation of a subscription at the end of its period.',
    action: 'Ask whoever runs the installation. Keep the webhook, and send it once the account is resumed.',
  },
  emailNotVerified: {
    means: 'The account signs in with a password and its e-mail address is not verified.',
    action: 'Verify the address at the identity provider, then sign in again.',
  },
  roleMissing: {
    means: 'The role of the credential may not do this. `message` names the roles that may.',
    action: 'Use a credential of one of those roles, or ask an admin or owner for a key.',
  },
  customerForeign: {
    means: '`customerId` names another customer than the credential.',
    action: 'Leave it out where it is optional. Where it is required, send your own id.',
  },
  projectForeign: {
    means: 'The key is limited to projects, and this reaches beyond them.',
    action: 'Use a key that is not limited to projects, or ask for what your projects hold.',
  },
  routeNotFound: {
    means: 'Nothing has this path. The grant of credits exists on the local instance only.',
    action:
      'Correct the path: paths are compared letter by letter, without a slash at the end. [The API](api.md) lists them.',
  },
  bodyTimeout: {
    means: `Headers took longer than ${HEADERS_TIMEOUT_MS / 1000} s to arrive, or the whole request longer than ${REQUEST_TIMEOUT_MS / 1000} s.`,
    action: 'Send it again over a faster connection, and send the body at once.',
  },
  bodyTooLarge: {
    means:
      'The body is larger than the limit of the endpoint. For webhooks it is `PENSTOCK_MAX_BODY_BYTES`, 1,000,000 by default.',
    action: 'Send less in one request. Put large content elsewhere, and send its address.',
  },
  bodyEncoded: {
    means: 'The body has a `Content-Encoding`.',
    action: 'Send the body as it is, not compressed.',
  },
  internal: {
    means: 'A fault of the service. The log has the request id and the cause.',
    action: 'Try again. If it stays, tell whoever runs the installation the `X-Request-Id` of the answer.',
  },
  databaseUnavailable: {
    means: 'Postgres cannot be asked. Nothing was charged, and no webhook was stored.',
    action: 'Send it again after `Retry-After` seconds, a webhook with the same message id.',
  },
  identityUnavailable: {
    means: 'The keys of the identity provider cannot be fetched, so the token cannot be checked.',
    action: 'Try again after `Retry-After` seconds, or use an API key.',
  },
  requestRate: {
    means:
      'This API key, or all credentials of the account together, send more requests than `PENSTOCK_KEY_REQUESTS_PER_SECOND` allows, or read more than it allows for the size of answers. Or too many of the account ask for the states of buffers at the same time, or wait while the account does not read its answers.',
    action: 'Send it again after `Retry-After` seconds, and send fewer at once.',
  },
  signUpRate: {
    means: 'The token is of a new account, and too many of them came lately.',
    action: 'Send it again after `Retry-After` seconds.',
  },
  customerLimit: {
    means: 'The customer has created `PENSTOCK_MAX_CUSTOMERS` customers.',
    action: 'Ask whoever runs the installation.',
  },
  projectLimit: {
    means: 'The customer has `PENSTOCK_MAX_PROJECTS` projects.',
    action: 'Delete some, or ask whoever runs the installation.',
  },
  bufferLimit: {
    means: 'The customer has `PENSTOCK_MAX_BUFFERS` buffers.',
    action: 'Delete some, or ask whoever runs the installation.',
  },
  idLimit: {
    means:
      'The customer has used ten times as many ids as it may have projects or buffers. Each stays its own for ever.',
    action: 'Use the id of a deleted project or buffer of yours again.',
  },
  testRate: {
    means: 'More tests of this buffer came than `PENSTOCK_TESTS_PER_MINUTE` allows.',
    action: 'Send it again after `Retry-After` seconds.',
  },
  customerNotFound: {
    means: 'There is no such customer, or it is neither the caller nor created by the caller.',
    action: 'Send the id of your own account, or of one that it created.',
  },
  customerUnknown: {
    means: 'The customer of the new project does not exist any more.',
    action: 'Use a credential of an existing customer.',
  },
  customerExists: { means: 'The id is taken.', action: 'Choose another id.' },
  projectNotFound: {
    means: 'There is no such project among those that the caller reaches.',
    action: 'Correct the id. `GET /v1/admin/projects` lists those that you reach.',
  },
  projectUnknown: {
    means: 'The project of the new buffer does not exist, or the caller does not reach it.',
    action: 'Create the project first, or correct `projectId`.',
  },
  projectExists: {
    means: 'The id is taken, perhaps by another customer, who may have deleted it.',
    action: 'Choose another id. If the project is yours, go on with it.',
  },
  projectHasBuffers: {
    means: 'A project can be deleted only without buffers.',
    action: 'Delete its buffers first. `GET /v1/admin/buffers` with `projectId` lists them.',
  },
  bufferNotFound: {
    means: 'There is no such buffer among those that the caller reaches.',
    action:
      'Correct the id. `GET /v1/admin/buffers` lists those that you reach. A new buffer takes webhooks within a second.',
  },
  bufferExists: {
    means: 'The id is taken, perhaps by another customer, who may have deleted it.',
    action: 'Choose another id. If the buffer is yours, change it by `PATCH /v1/admin/buffers/{bufferId}`.',
  },
  cloneFailed: {
    means: 'None of the ids that a clone tries is free.',
    action: 'Delete old copies, or create the buffer with an id of your own.',
  },
  deadLetterNotFound: {
    means: 'There is no such dead letter, or the key does not reach its project.',
    action: 'List the dead letters anew. One is gone once a retry succeeded or somebody deleted it.',
  },
  deadLetterForeign: {
    means: 'The dead letter belongs to another customer.',
    action: 'Use a credential of that customer.',
  },
  payloadUnavailable: {
    means: 'Only the summary of this dead letter is stored, not its batch.',
    action: 'Have its messages sent again, which `payloadSummary.messageIds` names. Then delete it.',
  },
  retryInProgress: {
    means: `Another retry of this dead letter runs, or its process died less than ${LEASE_MS / 1000} s ago.`,
    action: `Wait for ${LEASE_MS / 1000} s at most, then try again.`,
  },
  deliveryFailed: {
    means: 'The retry ran and failed. The body says how; the dead letter stays.',
    action: 'Read `errorClass` and `lastError`, mend the destination, then retry.',
  },
  apiKeyNotFound: {
    means:
      'There is no such key among those that the caller sees, or it was revoked before the 100 that are kept.',
    action: 'List the keys anew by `GET /v1/admin/api-keys`.',
  },
  apiKeyRevoked: { means: 'The key was revoked before.', action: 'Nothing: it does not work any more.' },
  apiKeyRoleHigher: {
    means: 'The key has a higher role than the caller, as an owner key for an admin.',
    action: 'Let somebody with that role revoke it.',
  },
  apiKeyLimit: {
    means: 'The customer has as many active keys as are allowed.',
    action: 'Revoke a key that nobody uses. `GET /v1/admin/api-keys` shows when each was last used.',
  },
  roleTooHigh: {
    means: 'A key cannot have a higher role than its creator.',
    action: 'Ask for your own role or a lower one.',
  },
  projectsTooBroad: {
    means: 'A key cannot reach projects that its creator does not reach.',
    action: 'Ask for a part of your own projects.',
  },
  currencyUnsupported: {
    means: 'Packs have no prices in this currency. The text names the supported ones.',
    action: 'Ask for a supported currency.',
  },
  packNotFound: {
    means: 'There is no such pack, or it is not sold any more.',
    action: 'List the packs anew by `GET /v1/admin/credit-packs`.',
  },
  packUnavailable: {
    means: 'The pack has no offer at the payment provider yet.',
    action: 'Choose a pack whose `available` is true.',
  },
  subscriptionRequired: {
    means: 'The customer has no usable subscription.',
    action: 'Subscribe to a plan first.',
  },
  planNotFound: {
    means: 'There is no such plan.',
    action: 'List the plans anew by `GET /v1/admin/plans`.',
  },
  planInactive: {
    means: 'The plan is not sold any more.',
    action: 'Choose a plan whose `isActive` is true.',
  },
  planWithoutCheckout: {
    means: 'The plan has no offer at the payment provider.',
    action: 'Choose another plan, or ask whoever runs the installation.',
  },
  subscriptionNotFound: {
    means: 'There is no active subscription. One that waits for its first payment is not active.',
    action: 'Nothing is left to cancel.',
  },
  subscriptionCancelling: {
    means: 'The subscription ends with its period already.',
    action: 'Wait for the end, or cancel it immediately.',
  },
  subscriptionCancelled: { means: 'The subscription has ended.', action: 'Nothing is left to cancel.' },
  invoiceNotFound: {
    means: 'There is no such invoice.',
    action: 'List the invoices anew by `GET /v1/admin/invoices`.',
  },
  invoiceForeign: {
    means: 'The invoice belongs to another customer.',
    action: 'Use a credential of that customer.',
  },
  subscriptionExists: {
    means:
      'The account has a subscription that is active, past due, or cancelled for a period that still runs.',
    action: 'Change the plan in the portal of the payment provider, or wait until the period is over.',
  },
  portalNotFound: {
    means: 'The payment provider does not know the account, because it has not begun to buy anything.',
    action: 'Ask for a checkout first.',
  },
  notificationInvalid: {
    means: 'The notification is not signed by the payment provider, is older than 300 s, or cannot be read.',
    action: 'For whoever runs the installation: compare the signing secrets.',
  },
  notificationLater: {
    means: 'What the notification names cannot be applied yet. The log says why.',
    action: 'Nothing: the payment provider tells it again.',
  },
  providerUnconfigured: {
    means: 'This needs a payment provider, and the installation has none.',
    action: 'Ask whoever runs the installation. Until then, no retry can succeed.',
  },
  providerUnavailable: {
    means: 'The payment provider failed, refused or did not answer. Nothing was changed here.',
    action: 'Send the request again after `Retry-After` seconds.',
  },
}

export function errorTable(group: ErrorGroup): string {
  return table(
    ['status', 'error', 'code', 'meaning', 'what to do'],
    errorGroups[group].map((key) => {
      const { status, error, code: name, retryAfter }: ErrorEntry = errors[key]
      const after = retryAfter === undefined ? '' : ` (\`Retry-After: ${retryAfter}\`)`
      const { means, action } = ADVICE[key]
      return [`${status}${after}`, error, name === undefined ? '' : code(name), means, action]
    }),
  )
}

/** What an endpoint can be refused with, a row a status. */
export function refusalTable(keys: readonly ErrorKey[]): string {
  const byStatus = Map.groupBy(keys, (key) => errors[key].status)
  const statuses = [...byStatus].sort(([a], [b]) => a - b)
  return table(
    ['refused with', 'error'],
    statuses.map(([status, some]) => [String(status), some.map(refusal).join('; ')]),
  )
}

function refusal(key: ErrorKey): string {
  const { error, code: name }: ErrorEntry = errors[key]
  return name === undefined ? error : `${error} (\`${name}\`)`
}
