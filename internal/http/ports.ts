import type { Principal } from '../domain/principal.ts'

/** Who a credential stands for. Both throw a ServiceError (401, 403) for a credential that is not good. */
export interface Authenticator {
  /** `svk_…`; 401 `Invalid or revoked API key`. */
  byKey(secret: string): Promise<Principal>
  /** ID token of the identity provider; 401, 403 `email_not_verified`, or 503 while it cannot be checked. */
  byToken(token: string): Promise<Principal>
}

/** Whose requests are answered 429 for their number. */
export type RateLimit = 'key' | 'customer' | 'test' | 'payment-provider' | 'sign-up'

/** What the HTTP server reports besides its answers. */
export interface HttpTelemetry {
  /** An answer of 500: an error that nobody meant for the caller. */
  failed(event: { requestId: string; method: string; path: string; error: unknown }): void
  /** A request beyond this limit, answered 429. */
  limited(limit: RateLimit): void
  /** An answer of 400 or more that ingest does not count. */
  refused(status: number): void
}
