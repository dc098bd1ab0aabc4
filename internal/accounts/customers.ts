/** Customers (docs/reference/api.md, "Customers"). Refusals are thrown as ServiceError. */

import { required, ServiceError } from '../domain/errors.ts'
import { parseIdentifier } from '../domain/identifiers.ts'
import type { Customer } from '../domain/model.ts'
import { parseName } from '../domain/names.ts'
import type { Principal } from '../domain/principal.ts'
import type { CustomerStore } from './ports.ts'

export interface Customers {
  /** 400 names the field, 403 for a project-scoped key, 409 exists or too many. The role is the caller's to check. */
  create(principal: Principal, input: { customerId: unknown; name: unknown }): Promise<Customer>
  /** Itself and those that it created; 404 for all others. */
  read(principal: Principal, customerId: string): Promise<Customer>
  /** Creates the customer, named as its id, unless it exists; for whoever runs the installation. Throws 400 for a bad id. */
  ensure(customerId: string): Promise<void>
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
    async ensure(id) {
      const customerId = required(parseIdentifier('customerId', id))
      await customers.insert({ customerId, name: customerId, createdBy: null, initialCredits })
    },
  }
}
