/**
 * A real OpenID provider (the package oidc-provider) on a loopback port: discovery, keys, and ID tokens by the
 * authorization code flow. People log in without a form; whose token it is, is said when one is asked for.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { type AdapterPayload, type Configuration, Provider } from 'oidc-provider'

/** Who logs in, as the provider's directory of people has it: claims by name, and how they did it. */
export interface Person {
  /** `sub`; default: somebody new. */
  sub?: string
  /** Methods of the login, claim `amr`. */
  amr?: string[]
  name?: string
  email?: string
  email_verified?: boolean
  /** What Firebase adds to its tokens. */
  firebase?: { sign_in_provider: string }
}

export type Algorithm = 'RS256' | 'PS256' | 'ES256' | 'ES384' | 'Ed25519'

export interface SigningKey {
  readonly kid: string
  readonly algorithm: Algorithm
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
}

/** The audience that tests configure; `OTHER_CLIENT` is one more client of the same provider. */
export const CLIENT = 'penstock-dashboard'
export const OTHER_CLIENT = 'another-dashboard'

const SECRET = 'a client secret of tests, which is long enough'
const CALLBACK = 'http://127.0.0.1:9/callback'
const LOGIN = '/login/'
/** No connection outlives its request: a restart must not cut one that the next request would take. */
const ALONE = { connection: 'close' }

export async function newKey(algorithm: Algorithm, kid: string = randomUUID()): Promise<SigningKey> {
  const pair = await generateKeyPair(algorithm, { extractable: true })
  return { kid, algorithm, ...pair }
}

export interface ProviderOptions {
  /** Tokens are signed with the first, all are published. Default: an RS256 and an ES256 key, made on the spot. */
  keys?: readonly SigningKey[]
  /** Default 0: any free port. */
  port?: number
}

export async function startIdentityProvider(options: ProviderOptions = {}): Promise<IdentityProvider> {
  const keys = options.keys ?? (await Promise.all([newKey('RS256'), newKey('ES256')]))
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const people = new Map<string, Person>()
  const provider = new Provider(issuer, await configuration(keys, people))
  return new IdentityProvider(issuer, server, provider, keys, people)
}

export class IdentityProvider {
  readonly issuer: string
  readonly keys: readonly SigningKey[]
  readonly #server: Server
  readonly #people: Map<string, Person>
  readonly #sockets = new Set<Socket>()
  readonly #asked = new Map<string, number>()
  #fault: { status: number; headers: Record<string, string>; body: string } | undefined

  constructor(
    issuer: string,
    server: Server,
    provider: Provider,
    keys: readonly SigningKey[],
    people: Map<string, Person>,
  ) {
    this.issuer = issuer
    this.keys = keys
    this.#server = server
    this.#people = people
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    const serve = provider.callback()
    server.on('request', (request, response) => {
      const path = request.url!.split('?', 1)[0]!
      this.#asked.set(path, (this.#asked.get(path) ?? 0) + 1)
      if (this.#fault) response.writeHead(this.#fault.status, this.#fault.headers).end(this.#fault.body)
      else if (path.startsWith(LOGIN)) void logIn(provider, people, request, response)
      else void serve(request, response)
    })
  }

  get port(): number {
    return Number(new URL(this.issuer).port)
  }

  get jwksUrl(): string {
    return `${this.issuer}/jwks`
  }

  /** How often its keys were asked for. */
  get keyRequests(): number {
    return this.#asked.get('/jwks') ?? 0
  }

  get discoveryRequests(): number {
    return this.#asked.get('/.well-known/openid-configuration') ?? 0
  }

  /** Every request is answered so from now on; default: with an empty object. */
  breakDown(status: number, headers: Record<string, string> = {}, body = '{}'): void {
    this.#fault = { status, headers, body }
  }

  recover(): void {
    this.#fault = undefined
  }

  /** An ID token of a new login, by the authorization code flow. */
  async token(person: Person = {}, clientId: string = CLIENT): Promise<string> {
    const sub = person.sub ?? randomUUID()
    this.#people.set(sub, { ...person, sub })
    const code = await this.#authorize(clientId, sub)
    const response = await fetch(`${this.issuer}/token`, {
      method: 'POST',
      headers: { ...ALONE, authorization: `Basic ${btoa(`${clientId}:${encodeURIComponent(SECRET)}`)}` },
      body: new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK }),
    })
    if (response.status !== 200) throw new Error(`no token: ${await response.text()}`)
    return ((await response.json()) as { id_token: string }).id_token
  }

  /** A token that the provider would not make, signed with its own key: for what must be refused. */
  forge(claims: JWTPayload, header: { alg?: string; typ?: string; kid?: string } = {}): Promise<string> {
    const key = this.keys[0]!
    const now = Math.floor(Date.now() / 1_000)
    const usual = { iss: this.issuer, aud: CLIENT, sub: 'forged', iat: now, exp: now + 600, amr: ['otp'] }
    const payload = JSON.parse(JSON.stringify({ ...usual, ...claims }))
    return new SignJWT(payload)
      .setProtectedHeader({ alg: key.algorithm, kid: key.kid, ...header })
      .sign(key.privateKey)
  }

  /** Cuts every connection and frees the port. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** As a browser that follows redirects and keeps cookies, up to the client's own address. */
  async #authorize(clientId: string, sub: string): Promise<string> {
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      login_hint: sub,
      scope: 'openid profile email',
    })
    const cookies = new Map<string, string>()
    let address = new URL(`/auth?${query}`, this.issuer)
    while (!address.href.startsWith(CALLBACK)) {
      const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
      const response = await fetch(address, { redirect: 'manual', headers: { ...ALONE, cookie } })
      for (const text of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(text)!
        cookies.set(name!, value!)
      }
      const location = response.headers.get('location')
      if (location === null)
        throw new Error(`${address} answered ${response.status}: ${await response.text()}`)
      address = new URL(location, this.issuer)
    }
    const code = address.searchParams.get('code')
    if (code === null) throw new Error(`no code: ${address}`)
    return code
  }
}

async function configuration(
  keys: readonly SigningKey[],
  people: ReadonlyMap<string, Person>,
): Promise<Configuration> {
  const stored = new Map<string, AdapterPayload>()
  const jwks = await Promise.all(keys.map(privateJwk))
  return {
    adapter: (kind) => records(kind, stored),
    jwks: { keys: jwks } as Configuration['jwks'],
    clients: [CLIENT, OTHER_CLIENT].map((client) => ({
      client_id: client,
      client_secret: SECRET,
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      id_token_signed_response_alg: keys[0]!.algorithm,
    })),
    claims: { openid: ['sub', 'amr', 'firebase'], profile: ['name'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: false,
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'ES384', 'Ed25519'] },
    pkce: { required: () => false },
    cookies: { keys: ['a key of tests'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `${LOGIN}${interaction.uid}` },
    ttl: { IdToken: 3_600, AccessToken: 600, Interaction: 600, Grant: 600, Session: 600 },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => claimsOf(people.get(sub), sub) }),
    // Everybody agrees to everything.
    async loadExistingGrant(ctx) {
      const { client, session, provider } = ctx.oidc
      const grant = new provider.Grant({ clientId: client!.clientId, accountId: session!.accountId! })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
  }
}

function claimsOf(person: Person | undefined, sub: string) {
  const { amr: _, ...claims } = person ?? {}
  return { ...claims, sub }
}

async function privateJwk({ kid, algorithm, privateKey }: SigningKey): Promise<JWK> {
  return { ...(await exportJWK(privateKey)), kid, alg: algorithm, use: 'sig' }
}

/** In place of a form: whoever the request hints at is logged in. */
async function logIn(
  provider: Provider,
  people: ReadonlyMap<string, Person>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { params } = await provider.interactionDetails(request, response)
  const accountId = String(params.login_hint)
  const amr = people.get(accountId)?.amr
  await provider.interactionFinished(request, response, { login: { accountId, ...(amr && { amr }) } })
}

/** The provider's own memory, of one kind of record; it ends with the provider. */
function records(kind: string, stored: Map<string, AdapterPayload>) {
  const unused = async (): Promise<undefined> => undefined
  return {
    upsert: async (id: string, payload: AdapterPayload) => void stored.set(`${kind} ${id}`, payload),
    find: async (id: string) => stored.get(`${kind} ${id}`),
    findByUid: async (uid: string) =>
      [...stored].find(([key, payload]) => key.startsWith(kind) && payload.uid === uid)?.[1],
    findByUserCode: unused,
    consume: unused,
    destroy: async (id: string) => void stored.delete(`${kind} ${id}`),
    revokeByGrantId: unused,
  }
}
