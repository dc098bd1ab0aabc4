/** An HTTP caller that answers with what tests look at. */
export interface Answer {
  status: number
  headers: Headers
  text: string
  /** The parsed body; undefined when it is no JSON. */
  json: unknown
}

export async function call(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: parsed(text) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Management calls with one key. */
export function adminOf(url: string, key: string) {
  const send = (method: string, path: string, body?: unknown): Promise<Answer> =>
    call(url + path, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  return {
    get: (path: string) => send('GET', path),
    post: (path: string, body?: unknown) => send('POST', path, body),
    patch: (path: string, body?: unknown) => send('PATCH', path, body),
    delete: (path: string, body?: unknown) => send('DELETE', path, body),
  }
}

export type Admin = ReturnType<typeof adminOf>

/** A buffer configuration that lacks nothing. */
export function bufferBody(bufferId: string, projectId: string, more: Record<string, unknown> = {}): unknown {
  return {
    bufferId,
    projectId,
    name: bufferId,
    groupKey: { mode: 'jsonpath', path: '$.customer' },
    delivery: { url: 'http://127.0.0.1:9/' },
    ...more,
  }
}
