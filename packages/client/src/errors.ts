/** The service refused a request. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly status: number
  /** `code` of the answer, such as `rate_limited` (docs/reference/errors.md); undefined: it has none. */
  readonly code: string | undefined
  /** Names the request in the log of the service. */
  readonly requestId: string | undefined
  /** The whole answer, as far as it is JSON. */
  readonly body: unknown

  constructor(request: string, response: Response, body: unknown) {
    const { error, code, message } = fieldsOf(body)
    const told = [error ?? response.statusText, message].filter((text) => text !== undefined).join(': ')
    super(`${request}: ${response.status} ${told}`)
    this.status = response.status
    this.code = code
    this.requestId = response.headers.get('x-request-id') ?? undefined
    this.body = body
  }
}

/** No attempt was answered. What it asked for may have been done all the same. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
}

function fieldsOf(body: unknown): { error?: string; code?: string; message?: string } {
  if (typeof body !== 'object' || body === null) return {}
  const texts = Object.entries(body).filter(([, value]) => typeof value === 'string')
  return Object.fromEntries(texts)
}
