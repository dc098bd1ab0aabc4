import type { ErrorKey } from '../../domain/errors.ts'
import { roles, rolesFor } from '../../domain/roles.ts'
import { passesSuspension, type Route } from './route.ts'

/** Of every management endpoint: a bad or missing credential, a bad query, an outage, a bug. */
export const errorsOfAll: readonly ErrorKey[] = [
  ...(['invalidRequest', 'credentialMissing', 'keyInvalid', 'tokenInvalid'] as const),
  ...([
    'emailNotVerified',
    'accountAnonymous',
    'requestRate',
    'signUpRate',
    'identityUnavailable',
    'internal',
    'databaseUnavailable',
    'connectionsBusy',
  ] as const),
]

/** Of every endpoint that takes a body. */
export const errorsOfBodies: readonly ErrorKey[] = [
  ...(['bodyNotJson', 'bodyTooDeep', 'bodyTimeout', 'bodyTooLarge', 'bodyEncoded'] as const),
  'bodiesBusy',
]

/** Every error that the endpoint can answer: its own, and what its shape, roles and credential imply. */
export function errorsOf(row: Route): readonly ErrorKey[] {
  const implied = [
    ...errorsOfAll,
    ...(passesSuspension(row) ? [] : (['accountSuspended'] as const)),
    ...(row.body ? errorsOfBodies : []),
    ...(rolesFor[row.action].length < roles.length ? (['roleMissing'] as const) : []),
    'customerForeign' as const,
    ...(row.notFound ? [row.notFound] : []),
  ]
  return [...new Set([...implied, ...row.errors])]
}
