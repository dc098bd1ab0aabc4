import type { Customer } from '../../domain/model.ts'
import type { Principal } from '../../domain/principal.ts'
import { body, identifier, name } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of customers that these rows call. */
export interface CustomersService {
  create(principal: Principal, input: { customerId: unknown; name: unknown }): Promise<Customer>
  read(principal: Principal, customerId: string): Promise<Customer>
}

/** docs/reference/api.md, "Customers". */
export function customerRoutes(customers: CustomersService): Route[] {
  return [
    route<unknown, unknown, { customerId: string; name: string }>({
      method: 'POST',
      path: '/v1/admin/customers',
      operationId: 'createCustomer',
      summary: 'Create a customer',
      action: 'createCustomers',
      body: body(
        'A customer to create.',
        { customerId: identifier('Identifier of the customer'), name: name() },
        ['customerId', 'name'],
      ),
      answers: { status: 201, schema: 'Customer' },
      errors: ['projectForeign', 'customerExists', 'customerLimit'],
      handler: async (call) => ({ status: 201, body: await customers.create(call.principal, call.body) }),
    }),
    route({
      method: 'GET',
      path: '/v1/admin/whoami',
      operationId: 'whoAmI',
      summary: 'See whom the credential stands for',
      action: 'read',
      answers: { status: 200, schema: 'WhoAmI' },
      errors: [],
      handler: async ({ principal }) => ({ status: 200, body: await whoAmI(customers, principal) }),
    }),
    route<{ customerId: string }, unknown, unknown>({
      method: 'GET',
      path: '/v1/admin/customers/{customerId}',
      operationId: 'readCustomer',
      summary: 'Read a customer',
      action: 'read',
      notFound: 'customerNotFound',
      answers: { status: 200, schema: 'Customer' },
      errors: [],
      handler: async (call) => ({
        status: 200,
        body: await customers.read(call.principal, call.params.customerId),
      }),
    }),
  ]
}

async function whoAmI(customers: CustomersService, principal: Principal) {
  const { customerId, role, projectIds: projects = null } = principal
  const { credits } = await customers.read(principal, customerId)
  return { customerId, role, projects, credits }
}
