/**
 * The identity provider's public keys (docs/architecture/protocol.md, "Accounts"): fetched when a token first needs
 * them, kept, and fetched again when they are old or a token names one that is not among them. Invariant: however
 * many tokens come, and whatever they name, the provider is asked once a cooldown at most, also while it fails.
 */
import { createRemoteJWKSet, customFetch, type FetchImplementation, type JWTVerifyGetKey } from 'jose'
import { ServiceError } from '../domain/errors.ts'
import type { Clock } from '../runtime/clock.ts'

export interface SigningKeysOptions {
  issuer: string
  /** undefined: what the provider's discovery document names (OpenID Connect Discovery, section 4). */
  jwksUrl: string | undefined
  /** Whether the discovery document may name plain http: the local instance only. */
  plainHttp: boolean
  clock: Clock
  /** The provider could not be asked, or answered nonsense; called once a failed attempt. */
  onProblem: (error: Error) => void
  /** Between two questions, ms. Default 5,000: so long may a token signed with a brand-new key be refused. */
  cooldownMs?: number
  /** So long may a key that the provider took back be used, ms. Default 600,000. */
  cacheMs?: number
}

/** One question with all its requests, ms. */
const TIMEOUT_MS = 5_000

/** Of a discovery document or a key set; real ones have a hundredth of it. */
const MOST_BYTES = 1_000_000

/** Minutes pass between two questions: a connection kept for the next one would be a dead one by then. */
const HEADERS = { accept: 'application/json', connection: 'close' }

type RequestInit = Parameters<FetchImplementation>[1]

/** Throws what jose throws for a token that names no key, ServiceError 503 when the keys cannot be had. */
export function createSigningKeys(options: SigningKeysOptions): JWTVerifyGetKey {
  const { issuer, jwksUrl, cooldownMs = 5_000, cacheMs = 600_000 } = options
  const keys = createRemoteJWKSet(new URL(jwksUrl ?? discoveryUrl(issuer)), {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: cooldownMs,
    cacheMaxAge: cacheMs,
    [customFetch]: restingAfterFailure({ ...options, cooldownMs }),
  })
  return async (header, token) => {
    try {
      return await keys(header, token)
    } catch (error) {
      if (!(error instanceof ProviderAwayError)) throw error
      throw new ServiceError('identityUnavailable', {}, { cause: error })
    }
  }
}

class ProviderAwayError extends Error {
  override readonly name = 'ProviderAwayError'
}

/** jose rests after a success only. */
function restingAfterFailure(options: SigningKeysOptions & { cooldownMs: number }): FetchImplementation {
  const { clock, onProblem, cooldownMs } = options
  let failed: { error: ProviderAwayError; until: number } | undefined
  return async (_, init) => {
    if (failed !== undefined && clock.monotonic() < failed.until) throw failed.error
    try {
      return Response.json(await readKeys(options, init))
    } catch (cause) {
      const error = new ProviderAwayError(`the keys of ${options.issuer} cannot be had: ${reason(cause)}`, {
        cause,
      })
      failed = { error, until: clock.monotonic() + cooldownMs }
      onProblem(error)
      throw error
    }
  }
}

async function readKeys(options: SigningKeysOptions, init: RequestInit): Promise<unknown> {
  const url = options.jwksUrl ?? (await discover(options, init))
  const { keys } = await readObject(url, init)
  const isSet = Array.isArray(keys) && keys.every((key) => typeof key === 'object' && key !== null)
  if (!isSet) throw new Error(`${url} is no JSON Web Key Set`)
  return { keys }
}

/** Where the provider says that its keys are. Asked anew each time: it may move them. */
async function discover({ issuer, plainHttp }: SigningKeysOptions, init: RequestInit): Promise<string> {
  const url = discoveryUrl(issuer)
  const found = await readObject(url, init)
  if (found.issuer !== issuer) {
    throw new Error(`${url} speaks of the issuer ${JSON.stringify(found.issuer)}`)
  }
  const address = URL.parse(String(found.jwks_uri))
  const safe = address?.protocol === 'https:' || (plainHttp && address?.protocol === 'http:')
  if (address === null || !safe) throw new Error(`${url} names no usable jwks_uri`)
  return address.href
}

function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** Redirects are not followed, as the request says: the answer is one of the host that was configured. */
async function readObject(url: string, init: RequestInit): Promise<Record<string, unknown>> {
  const response = await fetch(url, { ...init, headers: HEADERS })
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}`)
  const value: unknown = JSON.parse(await readText(response, url))
  if (typeof value !== 'object' || value === null) throw new Error(`${url} answered no JSON object`)
  return value as Record<string, unknown>
}

/** Up to a bound: what answers there may be broken, or no provider at all. */
async function readText(response: Response, url: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > MOST_BYTES) throw new Error(`${url} answered more than ${MOST_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** `fetch` itself says no more than that it failed. */
function reason(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error
    ? `${message}: ${cause.message || (cause as NodeJS.ErrnoException).code}`
    : message
}
