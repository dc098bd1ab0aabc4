import { createIdTokens, type IdTokensOptions } from '../../internal/identity/id-tokens.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { CLIENT, type IdentityProvider } from '../support/identity-provider.ts'

/** The machine's clock, moved by as much as a test says, ms. */
export function movableClock(): Clock & { move(ms: number): void } {
  const { now, monotonic, after } = systemClock()
  let moved = 0
  return {
    now: () => now() + moved,
    monotonic: () => monotonic() + moved,
    after,
    move(ms) {
      moved += ms
    },
  }
}

/** As a local instance that trusts this provider, with what it would have logged. */
export function verifierOf(provider: Pick<IdentityProvider, 'issuer'>, more: Partial<IdTokensOptions> = {}) {
  const problems: Error[] = []
  const clock = movableClock()
  const idTokens = createIdTokens({
    issuer: provider.issuer,
    audience: CLIENT,
    jwksUrl: undefined,
    plainHttp: true,
    clock,
    onProblem: (error) => problems.push(error),
    ...more,
  })
  return { verify: idTokens.verify, problems, clock }
}
