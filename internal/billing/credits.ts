/** Balances, grants and what moved them (docs/reference/api.md, "Credits"). Refusals are thrown as ServiceError. */

import { invalid, ServiceError } from '../domain/errors.ts'
import type { CreditTransaction } from '../domain/model.ts'
import type { Principal } from '../domain/principal.ts'
import type { CreditAccount, CreditAccounts } from './ports.ts'

/** Credits of one `POST /v1/admin/credits/add`. */
export const MAX_GRANT = 100_000

export interface Credits {
  read(principal: Principal): Promise<CreditAccount>
  /** 404 everywhere except on the local instance; 400 names `amount`, an integer from 1 to 100000. */
  add(
    principal: Principal,
    input: { amount?: unknown },
  ): Promise<{ customerId: string; creditsAdded: number; newBalance: number }>
  /** Newest first. `limit` from 1 to 500. 403 for a key that is limited to projects: they name the buffers of all projects. */
  transactions(principal: Principal, page: { limit: number }): Promise<{ transactions: CreditTransaction[] }>
}

export interface CreditsOptions {
  accounts: CreditAccounts
  /** Whether this is the local instance (docs/architecture/protocol.md, "The local instance"). */
  local: boolean
  /** Told after a balance was raised, before the answer: the ledger of this node forgets its refusals. */
  credited: (customerId: string) => void
}

export function createCredits({ accounts, local, credited }: CreditsOptions): Credits {
  return {
    async read({ customerId }) {
      return found(await accounts.read(customerId))
    },
    async add({ customerId }, { amount }) {
      if (!local) throw new ServiceError('routeNotFound')
      if (!isGrant(amount)) throw invalid(`amount must be an integer from 1 to ${MAX_GRANT}`)
      const newBalance = found(await accounts.grant(customerId, amount, 'Credits added'))
      credited(customerId)
      return { customerId, creditsAdded: amount, newBalance }
    },
    async transactions({ customerId, projectIds }, { limit }) {
      if (projectIds !== undefined) {
        throw new ServiceError('projectForeign', {
          error: 'A project-scoped key cannot read credit transactions',
        })
      }
      return { transactions: await accounts.transactions(customerId, limit) }
    },
  }
}

function isGrant(amount: unknown): amount is number {
  return typeof amount === 'number' && Number.isInteger(amount) && amount >= 1 && amount <= MAX_GRANT
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new ServiceError('customerNotFound')
  return value
}
