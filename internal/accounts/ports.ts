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
  /** 'limit': `createdBy` has created as many as it may. */
  insert(customer: NewCustomer): Promise<Customer | 'exists' | 'limit'>
  /** undefined: no such customer. `isInUse`: it has or had an API key, which only the installation gives it first. */
  creatorOf(customerId: string): Promise<{ createdBy: string | null; isInUse: boolean } | undefined>
  /** Whoever created the customer reads it no more. */
  takeOver(customerId: string): Promise<void>
  /** Readable by itself and by the customer that created it (docs/architecture/protocol.md, "Admin requests"). */
  find(reader: string, customerId: string): Promise<Customer | undefined>
}

export interface Suspension {
  /** Whether it was not so before. */
  changed: boolean
  /** Since when the customer is suspended, Unix epoch ms; null: it is not. */
  suspendedAt: number | null
}

export interface SuspensionStore {
  /** undefined: no such customer. Its buffers follow by `markBuffers`. */
  set(customerId: string, suspended: boolean): Promise<Suspension | undefined>
  /** Gives some buffers of the customer the state that it has, deleted ones too. Answers how many lacked it; 0: none is left. */
  markBuffers(customerId: string): Promise<number>
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
  /** 'limit': the customer has as many as it may. 'ids-spent': it has used as many ids as it may, and this is a new one. */
  insert(project: NewProject): Promise<Project | 'no-customer' | 'exists' | 'limit' | 'ids-spent'>
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
