/** The digest of a tag, asked of a registry of images (OCI distribution specification, "Pulling manifests"). */
import { createHash } from 'node:crypto'

const ANSWER_MS = 20_000
/** An index first: its digest stands for all platforms of the tag. */
const ACCEPT = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ')

/** `repository`: such as `library/node`. Rejects when the registry does not answer, or answers another manifest than it says. */
export async function digestOf(registry: string, repository: string, tag: string): Promise<string> {
  const url = new URL(`/v2/${repository}/manifests/${tag}`, registry)
  const first = await ask(url)
  const answer = first.status === 401 ? await ask(url, await tokenFor(first)) : first
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  // Not what a header says: what the manifest itself is.
  const digest = `sha256:${createHash('sha256')
    .update(Buffer.from(await answer.arrayBuffer()))
    .digest('hex')}`
  const said = answer.headers.get('docker-content-digest')
  if (said !== null && said !== digest) throw new Error(`${url} says ${said} and answers ${digest}`)
  return digest
}

/** `WWW-Authenticate: Bearer realm="…",service="…",scope="…"`; nobody has to log in for a public image. */
async function tokenFor(refused: Response): Promise<string> {
  const challenge = refused.headers.get('www-authenticate') ?? ''
  const { realm, ...parameters } = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value!]),
  )
  if (!/^Bearer /i.test(challenge) || realm === undefined) throw new Error(`${refused.url} asks for a login`)
  const answer = await ask(new URL(`?${new URLSearchParams(parameters)}`, realm))
  if (!answer.ok) throw new Error(`${realm} answered ${answer.status}`)
  const { token, access_token: access } = (await answer.json()) as { token?: string; access_token?: string }
  const got = token ?? access
  if (got === undefined) throw new Error(`${realm} answered no token`)
  return got
}

async function ask(url: URL, token?: string): Promise<Response> {
  const headers = { accept: ACCEPT, ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  try {
    return await fetch(url, { headers, signal: AbortSignal.timeout(ANSWER_MS) })
  } catch (error) {
    const { message, cause } = error as Error
    const reason = cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : message
    throw new Error(`${url.origin} cannot be asked: ${reason}`, { cause: error })
  }
}
