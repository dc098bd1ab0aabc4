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
  /** Why it refuses, in words that are the same for all of its kind; null: it accepts. */
  readonly reason: string | null
  /** What the owner of the buffer needs to know beyond the reason, for the log alone. */
  readonly detail?: Readonly<Record<string, unknown>> | undefined
  /** Of what it accepts; null: it refuses. */
  readonly item: AcceptedItem | null
}

export interface AcceptedItem {
  readonly messageId: string
  readonly itemId: string
  readonly duplicate: boolean
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** JSON, and the end of its line: the prompt of a shell must not stand behind it. */
function lineOf(body: object): string {
  return `${JSON.stringify(body)}\n`
}

const BAD_REQUEST_PAGE = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Bad Request</title></head>
<body><h1>Bad Request</h1><p>The request body is not valid JSON.</p></body>
</html>
`

/** The answer of a registry entry with its own text. */
function fixed(key: ErrorKey): IngestAnswer {
  const { status, error, code, retryAfter }: ErrorEntry = errors[key]
  return {
    status,
    type: JSON_TYPE,
    body: lineOf({ error, code }),
    retryAfter,
    reason: error,
    item: null,
  }
}

export const answers = {
  bufferNotFound: fixed('bufferNotFound'),
  bufferNotInProject: fixed('bufferNotInProject'),
  accountSuspended: fixed('accountSuspended'),
  bufferDisabled: fixed('bufferDisabled'),
  keyInvalid: fixed('ingestKeyInvalid'),
  keyMissing: fixed('ingestKeyMissing'),
  keyForeign: fixed('ingestKeyForeign'),
  signatureMissing: fixed('signatureMissing'),
  signatureInvalid: fixed('signatureInvalid'),
  signatureStale: fixed('signatureStale'),
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
    reason: 'The request body is not valid JSON',
    item: null,
  },
} as const satisfies Record<string, IngestAnswer>

/** `detail`: see IngestAnswer. */
export function refusal(error: ServiceError, detail?: Readonly<Record<string, unknown>>): IngestAnswer {
  const { status, retryAfter } = error
  const reason = error.entry.error
  return { status, type: JSON_TYPE, body: lineOf(error.body), retryAfter, reason, detail, item: null }
}

export function accepted(messageId: string, itemId: string): IngestAnswer {
  // Without an id of the sender's the two are one UUID, which needs no escaping.
  const id = messageId === itemId ? `"${itemId}"` : JSON.stringify(messageId)
  const body = `{"status":"accepted","messageId":${id},"itemId":"${itemId}"}\n`
  return acceptance(body, { messageId, itemId, duplicate: false })
}

/** `originalId`: itemId of the item that is buffered already. */
export function duplicate(messageId: string, originalId: string): IngestAnswer {
  const id = JSON.stringify(messageId)
  const body = `{"status":"accepted","messageId":${id},"itemId":"${originalId}","duplicate":true}\n`
  return acceptance(body, { messageId, itemId: originalId, duplicate: true })
}

function acceptance(body: string, item: AcceptedItem): IngestAnswer {
  return { status: 202, type: JSON_TYPE, body, retryAfter: undefined, reason: null, item }
}
