import { roles } from '../../domain/roles.ts'
import type { Schema } from './shape.ts'
import { closed, isoInstant, list, oneOf, orNull, text } from './shape.ts'

/** docs/reference/api.md, "API keys". */

const common: Readonly<Record<string, Schema>> = {
  keyId: text('Identifier of the key.', { minLength: 1 }),
  name: text('Name for people.', { minLength: 1, maxLength: 100 }),
  keyPrefix: text('First 8 characters of the key.', { minLength: 8, maxLength: 8 }),
  role: oneOf('Role of the key.', roles, 'Role'),
  projectIds: list(
    'Projects that the key is limited to; absent: all projects.',
    text('A project.', { minLength: 1 }),
  ),
  createdAt: isoInstant('Creation'),
}

export const apiKeySchema = closed(
  'ApiKey',
  'An API key without its secret.',
  {
    ...common,
    customerId: text('Its customer.', { minLength: 1 }),
    revokedAt: orNull(isoInstant('Revocation; null while it is active')),
    lastUsedAt: orNull(isoInstant('Last use; null before the first')),
  },
  ['projectIds'],
)

export const createdApiKeySchema = closed(
  'CreatedApiKey',
  'A new API key.',
  {
    ...common,
    secret: text('The key itself, shown this once.', { pattern: '^svk_[0-9a-f]{48}$' }),
  },
  ['projectIds'],
)
