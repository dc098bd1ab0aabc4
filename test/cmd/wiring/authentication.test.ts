import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createAuthenticator } from '../../../cmd/wiring/authentication.ts'
import type { Node, Store } from '../../../cmd/wiring/foundation.ts'
import { ServiceError } from '../../../internal/domain/errors.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { CLIENT, type IdentityProvider, startIdentityProvider } from '../../support/identity-provider.ts'
import { UNLIMITED } from '../../support/limits.ts'

describe('ID tokens of a process', () => {
  let provider: IdentityProvider
  beforeEach(async () => {
    provider = await startIdentityProvider()
  })
  afterEach(() => provider.stop())

  /** Who bears a good token, or the key of the error; with what was logged. */
  async function bearer(local: boolean): Promise<{ answer: string; warned: string[] }> {
    const warned: string[] = []
    const oidc = { issuer: provider.issuer, audience: CLIENT, jwksUrl: undefined }
    const node = {
      config: { oidc, local, initialCredits: 0 },
      clock: systemClock(),
      log: { warn: ({ error }: { error: string }) => warned.push(error) },
    }
    const store = {
      keys: {},
      identities: { customerOf: async () => ({ customerId: 'cus_known', suspended: false }) },
    }
    const audit = { changed() {} }
    const { byToken } = createAuthenticator(
      node as unknown as Node,
      store as unknown as Store,
      UNLIMITED,
      audit,
    )
    try {
      const { customerId } = await byToken(
        await provider.token({ email: 'a@b.example', email_verified: true }),
      )
      return { answer: customerId, warned }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return { answer: String(error.status), warned }
    }
  }

  it('may be those of a provider that names plain http on the local instance', async () => {
    expect(await bearer(true)).to.deep.equal({ answer: 'cus_known', warned: [] })
  })

  it('may not be elsewhere: its keys are not fetched in plain text', async () => {
    const { answer, warned } = await bearer(false)
    expect(answer).to.equal('503')
    expect(warned.join()).to.include('names no usable jwks_uri')
  })
})
