/** A webhook as the ingress hands it to the use case. */
import type { HeaderLookup } from '../domain/extract.ts'

/** What is known of a webhook before its body. */
export interface IngestHead {
  /** As the answer and the log name the request. */
  requestId: string
  /** Identifiers as `domain/identifiers.ts` has them; what cannot be one is answered before. */
  projectId: string
  bufferId: string
  /** A request header by name in any case, '' when it was sent empty, undefined when it was not sent. */
  header: HeaderLookup
}

export interface IngestRequest extends IngestHead {
  /** The raw body. */
  body: Uint8Array
}
