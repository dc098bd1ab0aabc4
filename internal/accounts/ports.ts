/** What the use cases of customers and projects need of Postgres. Every call rejects while it is away. */

import type { Customer, Project } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'

export interface NewCustomer {
  customerId: string
  name: string
  /** The customer whose owner created it, null: the operator, or a sign-up. */
  createdBy: string | null
  /** Credits granted at once, as a `grant` transaction; 0: none. Also the first `creditLimit`. */
  initialCredits: number
}

export interface CustomerStore {
  insert(customer: NewCustomer): Promise<Customer | 'exists'>
  /** Readable by itself and by the customer that created it (docs/architecture/protocol.md, "Admin requests"). */
  find(reader: string, customerId: string): Promise<Customer | undefined>
}

export interface SignUpStore {
  /**
   * `customerId` of the account of the identity provider; creates `customer` when the account has none yet, and
   * leaves nothing of it otherwise (exact under concurrency).
   */
  ensure(account: { issuer: string; subject: string }, customer: NewCustomer): Promise<string>
}

export interface NewProject {
  projectId: string
  customerId: string
  name: string
}

export interface ProjectStore {
  insert(project: NewProject): Promise<Project | 'no-customer' | 'exists'>
  /** Newest first. */
  list(scope: Scope): Promise<Project[]>
  find(scope: Scope, projectId: string): Promise<Project | undefined>
  /** Sets what is given, leaves the rest. */
  update(
    scope: Scope,
    projectId: string,
    change: { name?: string; enabled?: boolean },
  ): Promise<Project | undefined>
  delete(scope: Scope, projectId: string): Promise<'deleted' | 'has-buffers' | undefined>
}
