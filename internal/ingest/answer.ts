import { type ErrorEntry, type ErrorKey, errors, type ServiceError } from '../domain/errors.ts'

/**
 * Answers of ingest as finished texts (docs/reference/api.md, "Ingest"). What never changes is built once.
 */
export interface IngestAnswer {
  readonly status: number
  readonly type: 'application/json; charset=utf-8' | 'text/html; charset=utf-8'
  readonly body: string
  /** Seconds, the `Retry-After` header; undefined: none. */
  readonly retryAfter: number | undefined
}

const JSON_TYPE = 'application/json; charset=utf-8'

const BAD_REQUEST_PAGE = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Bad Request</title></head>
<body><h1>Bad Request</h1><p>The request body is not valid JSON.</p></body>
</html>
`

/** The answer of a registry entry with its own text. */
function fixed(key: ErrorKey): IngestAnswer {
  const { status, error, code, retryAfter }: ErrorEntry = errors[key]
  return answer(status, JSON.stringify({ error, code }), retryAfter)
}

function answer(status: number, body: string, retryAfter?: number): IngestAnswer {
  return { status, type: JSON_TYPE, body, retryAfter }
}

export const answers = {
  bufferNotFound: fixed('bufferNotFound'),
  bufferNotInProject: fixed('bufferNotInProject'),
  accountSuspended: fixed('accountSuspended'),
  bufferDisabled: fixed('bufferDisabled'),
  keyInvalid: fixed('ingestKeyInvalid'),
  keyForeign: fixed('ingestKeyForeign'),
  signatureMissing: fixed('signatureMissing'),
  signatureInvalid: fixed('signatureInvalid'),
  tooDeep: fixed('bodyTooDeep'),
  tooLarge: fixed('bodyTooLarge'),
  padded: fixed('bodyPadded'),
  encoded: fixed('bodyEncoded'),
  bodiesBusy: fixed('bodiesBusy'),
  secretUnreadable: fixed('secretUnreadable'),
  storageUnavailable: fixed('storageUnavailable'),
  bufferOverShare: fixed('bufferOverShare'),
  customerOverShare: fixed('customerOverShare'),
  databaseUnavailable: fixed('databaseUnavailable'),
  notJson: {
    status: errors.ingestBodyNotJson.status,
    type: 'text/html; charset=utf-8',
    body: BAD_REQUEST_PAGE,
    retryAfter: undefined,
  },
} as const satisfies Record<string, IngestAnswer>

export function refusal(error: ServiceError): IngestAnswer {
  return answer(error.status, JSON.stringify(error.body), error.retryAfter)
}

export function accepted(messageId: string, itemId: string): IngestAnswer {
  // Without an id of the sender's the two are one UUID, which needs no escaping.
  const id = messageId === itemId ? `"${itemId}"` : JSON.stringify(messageId)
  return answer(202, `{"status":"accepted","messageId":${id},"itemId":"${itemId}"}`)
}

/** `originalId`: itemId of the item that is buffered already. */
export function duplicate(messageId: string, originalId: string): IngestAnswer {
  return answer(
    202,
    `{"status":"accepted","messageId":${JSON.stringify(messageId)},"itemId":"${originalId}","duplicate":true}`,
  )
}
