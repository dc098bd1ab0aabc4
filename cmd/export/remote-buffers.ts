/** Buffers as the admin API answers them (docs/reference/api.md, "Buffers"). */
import { messageOf } from '../../internal/runtime/thrown.ts'
import type { ExportedBuffer } from '../../operator/export/buffer.ts'

/** Which buffers. */
export interface Selection {
  /** undefined: of the API key. */
  readonly customerId: string | undefined
  /** undefined: all that there are. */
  readonly projectId: string | undefined
}

interface Service {
  readonly url: string
  readonly apiKey: string
}

const DEADLINE_MS = 30_000

/** Throws an Error that tells what the service answered. */
export async function remoteBuffers(
  service: Service,
  { customerId, projectId }: Selection,
): Promise<ExportedBuffer[]> {
  // What the platform says of a key that is none would repeat it.
  if (!/^[\x21-\x7e]+$/.test(service.apiKey)) throw new Error('PENSTOCK_API_KEY is no API key')
  const whose = customerId ?? (await ask<{ customerId?: string }>(service, 'v1/admin/whoami')).customerId
  const query = new URLSearchParams({ customerId: `${whose}`, ...(projectId !== undefined && { projectId }) })
  const found = await ask<ExportedBuffer[]>(service, `v1/admin/buffers?${query}`)
  if (!Array.isArray(found)) throw new Error(`${service.url} answers no list of buffers`)
  return found
}

async function ask<T>({ url, apiKey }: Service, path: string): Promise<T> {
  const address = addressOf(url, path)
  const [status, text] = await answerTo(address, apiKey)
  if (status !== 200) throw new Error(`GET ${address.pathname}: ${status} ${wordsOf(text)}`.trimEnd())
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`GET ${address.pathname}: the answer is no JSON`, { cause: error })
  }
}

function addressOf(url: string, path: string): URL {
  const base = url.endsWith('/') ? url : `${url}/`
  if (/^https?:\/\//i.test(base) && URL.canParse(base)) return new URL(path, base)
  throw new Error('PENSTOCK_URL must be an http or https address')
}

/** A redirect would carry the key to another place. */
async function answerTo(address: URL, apiKey: string): Promise<[number, string]> {
  const signal = AbortSignal.timeout(DEADLINE_MS)
  try {
    const answer = await fetch(address, { headers: { 'x-api-key': apiKey }, redirect: 'error', signal })
    return [answer.status, await answer.text()]
  } catch (error) {
    const cause = (error as Error).cause ?? error
    throw new Error(`no answer from ${address.origin}: ${messageOf(cause)}`, { cause: error })
  }
}

function wordsOf(text: string): string {
  try {
    return String((JSON.parse(text) as { error?: unknown }).error ?? '')
  } catch {
    return ''
  }
}
