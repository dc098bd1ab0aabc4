/** That a running service has the rate of its variable (docs/reference/api.md, "Limits"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { Api } from '../support/api.ts'
import { CLIENT, startIdentityProvider } from '../support/identity-provider.ts'
import { createInstallation } from '../support/service.ts'
import { FRONTS } from '../support/shape.ts'

describe('the service with a rate of sign-ups', () => {
  it('refuses new people beyond it, and serves those who are known', async function () {
    this.timeout(120_000)
    const provider = await startIdentityProvider()
    const env = {
      PENSTOCK_OIDC_ISSUER: provider.issuer,
      PENSTOCK_OIDC_AUDIENCE: CLIENT,
      PENSTOCK_SIGN_UPS_PER_MINUTE: '2',
    }
    const installation = await createInstallation({ shared: true, env })
    const service = await installation.start()
    const nobody = new Api(() => service.url, undefined, '')
    const people = await Promise.all(
      Array.from({ length: 4 * FRONTS + 1 }, (_, n) =>
        provider.token({ firebase: { sign_in_provider: 'google.com' }, sub: `person-${n}` }),
      ),
    )
    const ask = (token: string) =>
      nobody.request('GET', '/v1/admin/credits', undefined, { authorization: `Bearer ${token}` })
    const answers: Awaited<ReturnType<typeof ask>>[] = []
    for (const token of people) answers.push(await ask(token))
    const refused = answers.filter(({ status }) => status !== 200)
    expect(refused.length).to.be.within(1, people.length - 1)
    for (const answer of refused) {
      expect([answer.status, answer.json()]).to.deep.equal([
        429,
        { error: 'Too many new accounts, try again later', code: 'rate_limited' },
      ])
      expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 60)
    }
    const known = people.filter((_, n) => answers[n]!.status === 200)
    for (const token of known) expect((await ask(token)).status).to.equal(200)
    await provider.stop()
    expect(await installation.stop()).to.equal(0)
  })
})
