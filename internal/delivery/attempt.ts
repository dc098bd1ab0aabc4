import type { BufferRecord, ErrorClass } from '../domain/model.ts'

/** One batch to send with its buffer's configuration of that moment. */
export interface Attempt {
  /** The buffer as it is now. Asked at once, for the queue of its origin, and again when the attempt's turn has come. */
  record: () => BufferRecord
  /** Value of the idempotency header, `grp:<groupId>:v<version>`. */
  key: string
  /** Sent byte for byte. */
  body: Uint8Array
  /**
   * Asked once, right before the request is sent, which is long after the call when the destination is slow.
   * False withdraws it: nothing is sent and the result is `unsent`.
   */
  proceed?: () => boolean
}

export interface SendOptions {
  proceed?: () => boolean
  /** What takes turns within its customer; attempts of one flow keep their order of start. Default: the URL. */
  flow?: string
  /** Whose share of the connections, of the attempts at once and of the lookups is used. Default: the flow. */
  customerId?: string
  /** Longest wait for a turn, ms; afterwards `unsent`. Default: as long as the queue (bounded by its length) takes. */
  maxWaitMs?: number
  /** `responseBody` of a 2xx is wanted, too: the result comes up to a second after the head. Default false. */
  readsBody?: boolean
}

export interface AttemptResult {
  /** The head of a 2xx response arrived within the deadline. */
  delivered: boolean
  /** False for 2xx and 4xx. */
  retryable: boolean
  /** HTTP status, 0 when no response arrived. */
  statusCode: number
  /** null when delivered. */
  errorClass: ErrorClass | null
  /** One short line without addresses, header values or bodies; null when delivered. */
  error: string | null
  /** From its turn (not the call) to the result, whole ms. */
  durationMs: number
  /** The first 4 KB of the response body as text, as far as it arrived within a second of its head. Else, and for a 2xx without `readsBody`, null. */
  responseBody: string | null
  /**
   * Nothing was sent: the attempt was withdrawn, found the queue full, waited too long, or this process lacked what it
   * needs for a lookup or a socket. It does not count as an attempt.
   */
  unsent?: boolean
}
