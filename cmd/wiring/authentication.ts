/** Who may: API keys, and ID tokens where an identity provider is configured. */
import { createSignUps } from '../../internal/accounts/sign-ups.ts'
import type { AuditTrail } from '../../internal/audit/trail.ts'
import {
  createKeyAuthentication,
  createTokenAuthentication,
  type KeyAuthentication,
  type TokenAuthentication,
} from '../../internal/auth/authentication.ts'
import type { TokenVerifier } from '../../internal/auth/ports.ts'
import { createIdTokens } from '../../internal/identity/id-tokens.ts'
import { createSignUpStore } from '../../internal/postgres/identities.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import type { Node, Store } from './foundation.ts'
import type { Limited } from './limits.ts'

export function createAuthenticator(
  node: Node,
  store: Store,
  signUps: Limited,
  audit: Pick<AuditTrail, 'changed'>,
): KeyAuthentication & TokenAuthentication {
  const { signUp } = createSignUps({
    signUps: createSignUpStore(store.db),
    randomness: systemRandomness(),
    initialCredits: node.config.initialCredits,
    ...signUps,
    onCreated: ({ issuer, subject }, customerId) =>
      audit.changed({
        principal: { customerId, role: 'owner', via: 'token', identity: { issuer, subject } },
        action: 'createCustomers',
        method: null,
        route: 'sign-up',
        target: {},
        from: {},
        status: 201,
      }),
  })
  return {
    ...createKeyAuthentication(store.keys),
    ...createTokenAuthentication({ verifier: verifierOf(node), identities: store.identities, signUp }),
  }
}

/** Asks nobody yet: a provider that is away now may be there when the first token comes. */
function verifierOf({ config, clock, log }: Node): TokenVerifier | undefined {
  if (config.oidc === undefined) return undefined
  const onProblem = (error: Error) => log.warn({ error: error.message }, 'ID tokens cannot be checked')
  return createIdTokens({ ...config.oidc, plainHttp: config.local, clock, onProblem })
}
