/** What the URL of a database says of TLS (docs/reference/configuration.md, "Postgres over TLS"). */

/** Modes in which the driver encrypts and takes any certificate. `verify-ca` and `verify-full` check it with its name. */
const UNVERIFIED = ['allow', 'prefer', 'require']

/** The mode by which the driver takes the certificate of anybody, undefined: none. */
export function unverifiedMode(databaseUrl: string): string | undefined {
  const query = URL.parse(databaseUrl)?.searchParams
  const mode = query?.get('sslmode') ?? query?.get('ssl') ?? ''
  return UNVERIFIED.includes(mode) && query?.get('sslrootcert') !== 'system' ? mode : undefined
}
