/** People who sign in at a real identity provider, at the whole service (docs/reference/api.md, "Authentication"). */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import type { AuditPage } from '../../internal/audit/reading.ts'
import { freePort } from '../../internal/embedded/port.ts'
import { RawClient } from '../http/raw-client.ts'
import { Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { untilAllAnswer } from '../support/fronts.ts'
import { CLIENT, type IdentityProvider, newKey, startIdentityProvider } from '../support/identity-provider.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'

const INITIAL_CREDITS = 700
/** They log in without a password, so no e-mail address has to be verified. */
const google = { firebase: { sign_in_provider: 'google.com' } }
const WHOSE = '/v1/admin/credits'

describe('the service with an identity provider', function () {
  this.timeout(120_000)
  let provider: IdentityProvider
  let installation: Installation
  let sink: Sink

  before(async () => {
    // A port that no connection takes while the provider is away.
    provider = await startIdentityProvider({ port: await freePort() })
    sink = await startSink()
    installation = await createInstallation({
      shared: true,
      env: {
        PENSTOCK_INITIAL_CREDITS: String(INITIAL_CREDITS),
        PENSTOCK_OIDC_ISSUER: provider.issuer,
        PENSTOCK_OIDC_AUDIENCE: CLIENT,
      },
    })
    // Away while the service starts: nobody needs it yet.
    await provider.stop()
    await installation.start()
  })
  after(async () => {
    await installation.stop()
    await Promise.all([provider.stop(), sink.close()])
  })

  const url = () => installation.service.url
  const nobody = new Api(url, undefined, '')

  /** A management request with this credential alone. */
  function as(token: string, method = 'GET', path = WHOSE, body?: object, headers = {}) {
    return nobody.request(method, path, body, { authorization: `Bearer ${token}`, ...headers })
  }

  it('starts without it, answers 503 to tokens meanwhile, and serves keys', async () => {
    const { port, keys } = provider
    const token = `${base64({ alg: 'RS256', kid: keys[0]!.kid })}.${base64({})}.AAAA`
    const answer = await as(token)
    expect([answer.status, answer.json()]).to.deep.equal([
      503,
      { error: 'Identity provider cannot be reached, try again or use an API key' },
    ])
    expect(answer.headers.get('retry-after')).to.equal('5')
    // The line may arrive after the answer: they take different pipes.
    await eventually(() => installation.events('ID tokens cannot be checked').length > 0)
    expect(installation.events('ID tokens cannot be checked')).to.have.length(1)
    expect(await installation.api().credits()).to.include({ credits: INITIAL_CREDITS })
    provider = await startIdentityProvider({ port, keys })
    await eventually(async () => (await as(token)).status === 401, { timeoutMs: 20_000, everyMs: 100 })
  })

  it('signs a person up with the first token, who then does all that an owner may', async () => {
    const token = await provider.token({ ...google, sub: 'ada', name: 'Ada', email: 'ada@example.com' })
    const first = await as(token)
    expect(first.status, first.text).to.equal(200)
    const { customerId, credits } = first.json()
    expect(customerId).to.match(/^cus_[0-9a-f]{24}$/)
    expect(credits).to.equal(INITIAL_CREDITS)
    const customer = await as(token, 'GET', `/v1/admin/customers/${customerId}`)
    expect(customer.json()).to.include({ customerId, name: 'Ada', creditLimit: INITIAL_CREDITS })

    expect(
      (await as(token, 'POST', '/v1/admin/projects', { projectId: 'ada', name: 'Ada' })).status,
    ).to.equal(201)
    const buffer = {
      bufferId: 'ada-orders',
      projectId: 'ada',
      name: 'Orders',
      groupKey: { mode: 'jsonpath', path: '$.group' },
      batch: { maxItems: 1 },
      delivery: { url: sink.url('/ada') },
    }
    const created = await as(token, 'POST', '/v1/admin/buffers', buffer)
    expect(created.status, created.text).to.equal(201)
    expect(created.json()).to.include({ customerId, projectId: 'ada' })
    expect((await nobody.ingest('ada', 'ada-orders', { group: 'g' })).status).to.equal(202)
    await sink.waitForCount(1, '/ada')

    const audit = await eventually(async () => {
      const { records } = (await as(token, 'GET', '/v1/admin/audit')).json() as AuditPage
      expect(records).to.have.length(3)
      return records.reverse()
    })
    expect(audit.map(({ route, status }) => [route, status])).to.deep.equal([
      ['sign-up', 201],
      ['/v1/admin/projects', 201],
      ['/v1/admin/buffers', 201],
    ])
    for (const { actor } of audit)
      expect(actor).to.deep.equal({ type: 'token', issuer: provider.issuer, subject: 'ada' })

    const list = await as(token, 'GET', `/v1/admin/buffers?customerId=${customerId}`)
    expect(list.json().map(({ bufferId }: { bufferId: string }) => bufferId)).to.deep.equal(['ada-orders'])
    expect((await as(token, 'GET', `/v1/dlq?customerId=${customerId}`)).json()).to.deep.equal([])
    const made = await as(token, 'POST', '/v1/admin/customers', { customerId: 'of-ada', name: 'Of Ada' })
    expect(made.status, 'only owners create customers').to.equal(201)

    const key = await as(token, 'POST', '/v1/admin/api-keys', { name: 'Script' })
    expect(key.json()).to.include({ role: 'owner' }).and.not.have.property('projectIds')
    const script = new Api(url, key.json().secret, customerId)
    expect(await script.credits()).to.include({ customerId })
    const later = await as(await provider.token({ ...google, sub: 'ada' }))
    expect(later.json().customerId, 'the same person with a later token').to.equal(customerId)
    expect((await as(token, 'DELETE', `/v1/admin/api-keys/${key.json().keyId}`)).status).to.equal(204)
  })

  it('keeps people apart', async () => {
    const [ada, eve] = [
      await provider.token({ ...google, sub: 'a' }),
      await provider.token({ ...google, sub: 'e' }),
    ]
    const { customerId } = (await as(ada)).json()
    expect((await as(eve)).json().customerId).to.not.equal(customerId)
    await as(ada, 'POST', '/v1/admin/projects', { projectId: 'private', name: 'Private' })
    expect((await as(eve, 'GET', '/v1/admin/projects/private')).status).to.equal(404)
    expect((await as(eve, 'GET', `/v1/admin/projects?customerId=${customerId}`)).status).to.equal(403)
    expect((await as(eve, 'GET', `/v1/admin/customers/${customerId}`)).status).to.equal(404)
  })

  it('signs up once, however many first requests come together', async () => {
    const token = await provider.token({ ...google, sub: 'hasty' })
    const answers = await Promise.all(Array.from({ length: 25 }, () => as(token)))
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
    expect(new Set(answers.map((answer) => answer.json().customerId)).size).to.equal(1)
    const [first] = answers
    const { transactions } = (await as(token, 'GET', '/v1/admin/credits/transactions')).json()
    expect(transactions, first!.text).to.have.length(1)
  })

  it('refuses a password account without a verified e-mail address until it is verified', async () => {
    const person = { sub: 'pat', email: 'pat@example.com', firebase: { sign_in_provider: 'password' } }
    for (const more of [{}, { email_verified: false }]) {
      const answer = await as(await provider.token({ ...person, ...more }))
      expect([answer.status, answer.json()]).to.deep.equal([
        403,
        { error: 'E-mail address is not verified', code: 'email_not_verified' },
      ])
    }
    const silent = await as(await provider.token({ sub: 'silent' }))
    expect(silent.json(), 'says not how it signed in').to.include({ code: 'email_not_verified' })
    const verified = await as(await provider.token({ ...person, email_verified: true }))
    expect(verified.status, verified.text).to.equal(200)
  })

  it('uses the key when both come, also when the key is bad', async () => {
    const token = await provider.token({ ...google, sub: 'both' })
    const owner = installation.api()
    const both = await owner.request('GET', WHOSE, undefined, { authorization: `Bearer ${token}` })
    expect(both.json()).to.include({ customerId: owner.customerId })
    for (const key of ['', 'svk_nobody', `svk_${'0'.repeat(48)}`]) {
      const answer = await as(token, 'GET', WHOSE, undefined, { 'x-api-key': key })
      expect([answer.status, answer.json()]).to.deep.equal([401, { error: 'Invalid or revoked API key' }])
    }
    const beside = await owner.request('GET', WHOSE, undefined, { authorization: 'Bearer nonsense' })
    expect(beside.status).to.equal(200)
  })

  it('reads the scheme in any case, and refuses other schemes and bad tokens with 401', async () => {
    const token = await provider.token({ ...google, sub: 'case' })
    for (const scheme of ['bearer', 'BEARER', 'bEaReR']) {
      const answer = await nobody.request('GET', WHOSE, undefined, { authorization: `${scheme} ${token}` })
      expect(answer.status, scheme).to.equal(200)
    }
    const expired = await provider.forge({ exp: Math.floor(Date.now() / 1_000) - 60 })
    const bad = [
      'Bearer',
      'Bearer ',
      `Basic ${token}`,
      token,
      `Bearer ${token},${token}`,
      `Bearer ${token} x`,
    ]
    const tokens = [expired, `${token}x`, 'x'.repeat(20_000), await provider.forge({ aud: 'somebody-else' })]
    for (const authorization of [...bad, ...tokens.map((each) => `Bearer ${each}`)]) {
      const answer = await nobody.request('GET', WHOSE, undefined, { authorization })
      expect([answer.status, answer.json()], authorization.slice(0, 40)).to.deep.equal([
        401,
        { error: 'Invalid or expired ID token' },
      ])
    }
    const missing = await nobody.request('GET', WHOSE)
    expect([missing.status, missing.json()]).to.deep.equal([401, { error: 'Missing credential' }])
  })

  it('refuses several Authorization headers, also when each of them is good', async () => {
    const [ada, bob] = [
      await provider.token({ ...google, sub: 'x' }),
      await provider.token({ ...google, sub: 'y' }),
    ]
    const client = await RawClient.open(Number(new URL(url()).port))
    const send = (...lines: string[]) => {
      client.send(`GET ${WHOSE} HTTP/1.1\r\nHost: x\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`)
      return client.answer()
    }
    expect(await send(`Authorization: Bearer ${ada}`)).to.include({ status: 200 })
    for (const other of [bob, ada, 'nonsense']) {
      const { status, body } = await send(`Authorization: Bearer ${ada}`, `authorization: Bearer ${other}`)
      expect([status, JSON.parse(body)]).to.deep.equal([401, { error: 'Invalid or expired ID token' }])
    }
    const { secret } = await installation.api().createKey()
    const both = ['Authorization: Bearer x', 'Authorization: Bearer y', `X-API-Key: ${secret}`]
    expect(await send(...both), 'the key decides').to.include({ status: 200 })
    const twice = await send(`X-API-Key: ${secret}`, `X-API-Key: ${secret}`)
    expect([twice.status, JSON.parse(twice.body)]).to.deep.equal([
      401,
      { error: 'Invalid or revoked API key' },
    ])
    client.close()
  })

  it('takes no token for ingest: it is passed over there', async () => {
    const token = await provider.token({ ...google, sub: 'in' })
    const headers = { authorization: `Bearer ${token}` }
    await as(token, 'POST', '/v1/admin/projects', { projectId: 'in', name: 'In' })
    const delivery = { url: sink.url('/in') }
    const groupKey = { mode: 'jsonpath', path: '$.group' }
    await as(token, 'POST', '/v1/admin/buffers', {
      bufferId: 'in',
      projectId: 'in',
      name: 'In',
      groupKey,
      delivery,
    })
    const good = await nobody.ingest('in', 'in', { group: 'g' }, headers)
    const odd = await nobody.ingest('in', 'in', { group: 'g' }, { authorization: 'Bearer nonsense' })
    const asKey = await nobody.ingest('in', 'in', { group: 'g' }, { 'x-api-key': token })
    expect([good.status, odd.status, asKey.status]).to.deep.equal([202, 202, 401])
  })

  it('follows the provider to new keys without a restart, and refuses the old ones from then on', async () => {
    const old = await provider.token({ ...google, sub: 'ada' })
    expect((await as(old)).status).to.equal(200)
    const { port } = provider
    await provider.stop()
    provider = await startIdentityProvider({ port, keys: [await newKey('ES256')] })
    const token = await provider.token({ ...google, sub: 'ada' })
    const { customerId } = await eventually(
      async () => {
        const answer = await as(token)
        return answer.status === 200 && answer.json()
      },
      { timeoutMs: 20_000, everyMs: 100 },
    )
    expect(customerId).to.match(/^cus_/)
    // A process that nobody has shown the new token has no reason to ask for keys.
    const shown = { method: 'GET', headers: { authorization: `Bearer ${token}` } } as const
    await untilAllAnswer(url() + WHOSE, ({ status }) => status === 200, shown, { timeoutMs: 20_000 })
    expect((await as(old)).status).to.equal(401)
    const asked = provider.keyRequests
    for (let n = 0; n < 20; n++) expect((await as(token)).status).to.equal(200)
    expect(provider.keyRequests).to.equal(asked)
  })
})

describe('the service without an identity provider', () => {
  it('refuses every token, and a start with half of one', async function () {
    this.timeout(120_000)
    const installation = await createInstallation({ shared: true })
    for (const [name, value, blamed] of [
      ['PENSTOCK_OIDC_ISSUER', 'https://id.example', 'PENSTOCK_OIDC_AUDIENCE'],
      ['PENSTOCK_OIDC_AUDIENCE', CLIENT, 'PENSTOCK_OIDC_ISSUER'],
      ['PENSTOCK_OIDC_JWKS_URL', 'https://id.example/keys', 'PENSTOCK_OIDC_ISSUER'],
    ] as const) {
      const refused = await installation.spawn({ [name]: value })
      expect(await refused.exited()).to.equal(1)
      expect(refused.output().trim()).to.match(new RegExp(`^${blamed}: [^\\n]+$`))
    }
    const service = await installation.start()
    const provider = await startIdentityProvider()
    const headers = { authorization: `Bearer ${await provider.token(google)}` }
    const answer = await fetch(service.url + WHOSE, { headers })
    expect([answer.status, await answer.json()]).to.deep.equal([
      401,
      { error: 'Invalid or expired ID token' },
    ])
    expect(provider.keyRequests).to.equal(0)
    await provider.stop()
    expect(await installation.stop()).to.equal(0)
  })
})

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
