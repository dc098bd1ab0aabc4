/** Customers (docs/reference/api.md, "Customers"). Refusals are thrown as ServiceError. */

import { required, ServiceError } from '../domain/errors.ts'
import { parseIdentifier } from '../domain/identifiers.ts'
import type { Creator, Customer } from '../domain/model.ts'
import { parseName } from '../domain/names.ts'
import type { Principal } from '../domain/principal.ts'
import type { CustomerStore } from './ports.ts'

export interface Customers {
  /** 400 names the field, 403 for a project-scoped key, 409 exists or too many. The role is the caller's to check. */
  create(principal: Principal, input: { customerId: unknown; name: unknown }): Promise<Customer>
  /** Itself and those that it created; 404 for all others. */
  read(principal: Principal, customerId: string): Promise<Customer>
  /**
   * Creates the customer, named as its id, unless it exists; for whoever runs the installation. `creator` says what
   * becomes of another customer that created it, and reads it: absent, that is refused unless it is in use already, for
   * anybody may create an id that the installation will give out. Throws 400 for a bad id.
   */
  ensure(customerId: string, creator?: Creator): Promise<void>
}

export interface CustomersOptions {
  customers: CustomerStore
  /** Credits of a new customer, >= 0 (`PENSTOCK_INITIAL_CREDITS`). */
  initialCredits: number
}

export function createCustomers({ customers, initialCredits }: CustomersOptions): Customers {
  return {
    async create(principal, input) {
      const customerId = required(parseIdentifier('customerId', input.customerId))
      const name = required(parseName('name', input.name))
      if (principal.projectIds !== undefined) {
        throw new ServiceError('projectForeign', { error: 'A project-scoped key cannot create customers' })
      }
      const createdBy = principal.customerId
      const created = await customers.insert({ customerId, name, createdBy, initialCredits })
      if (created === 'exists') throw new ServiceError('customerExists')
      if (created === 'limit') throw new ServiceError('customerLimit')
      return created
    },
    async read(principal, customerId) {
      const customer = await customers.find(principal.customerId, customerId)
      if (customer === undefined) throw new ServiceError('customerNotFound')
      return customer
    },
    async ensure(id, creator) {
      const customerId = required(parseIdentifier('customerId', id))
      const inserted = await customers.insert({
        customerId,
        name: customerId,
        createdBy: null,
        initialCredits,
      })
      if (inserted !== 'exists' || creator === 'keep') return
      if (creator === 'take-over') await customers.takeOver(customerId)
      else refuseForeign(customerId, await customers.creatorOf(customerId))
    },
  }
}

function refuseForeign(
  customerId: string,
  found: { createdBy: string | null; isInUse: boolean } | undefined,
): void {
  if (found === undefined || found.createdBy === null || found.isInUse) return
  const facts = `${found.createdBy} created the customer ${customerId} and reads its balance and use`
  const ways = 'with --take-over, which ends that, or --keep-creator'
  throw new Error(`${facts}. To give it out, run \`npm run account -- ${customerId}\` ${ways}`)
}
