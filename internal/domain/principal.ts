/**
 * Who asks, and the one rule of what a project-scoped credential sees and touches (docs/architecture/protocol.md,
 * "Admin requests"): every read, list and write of the use cases goes through the scope made here.
 */

import type { Role } from './model.ts'

export interface Principal {
  readonly customerId: string
  readonly role: Role
  /** undefined: all projects of the customer. */
  readonly projectIds?: readonly string[]
  /** The API key that was used; undefined for an ID token. */
  readonly keyId?: string
  /** The account of the identity provider; undefined for an API key. */
  readonly identity?: { readonly issuer: string; readonly subject: string }
  readonly via: 'key' | 'token'
  /** The customer is suspended: it may read, and end rights. It may change nothing else. */
  readonly suspended?: true
}

/** What a principal can reach: one customer, and of it all projects or the named ones. */
export interface Scope {
  readonly customerId: string
  /** null: all projects. */
  readonly projectIds: readonly string[] | null
}

export function scopeOf(principal: Principal): Scope {
  return { customerId: principal.customerId, projectIds: principal.projectIds ?? null }
}

/** Whether the scope holds this project of this customer. */
export function inScope(scope: Scope, customerId: string, projectId: string): boolean {
  return (
    scope.customerId === customerId && (scope.projectIds === null || scope.projectIds.includes(projectId))
  )
}
