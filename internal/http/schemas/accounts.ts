import { roles } from '../../domain/roles.ts'
import { closed, count, flag, instant, integer, list, oneOf, orNull, text } from './shape.ts'

/** docs/reference/api.md, "Customers" and "Projects". */

export const customerSchema = closed(
  'Customer',
  'A customer.',
  {
    customerId: text('Identifier of the customer.', { minLength: 1 }),
    name: text('Name for people.', { minLength: 1 }),
    enabled: flag('Stored, without effect.'),
    credits: integer('Current balance, credits.'),
    creditLimit: count('Credits granted a cycle by the plan, else the initial grant.'),
    creditsUsedThisMonth: count('Credits consumed since the month began (UTC).'),
    createdAt: instant('Creation'),
    suspendedAt: instant('Suspension; absent while the account is not suspended'),
  },
  ['suspendedAt'],
)

export const projectSchema = closed('Project', 'A project.', {
  projectId: text('Identifier of the project.', { minLength: 1 }),
  customerId: text('Its customer.', { minLength: 1 }),
  name: text('Name for people.', { minLength: 1 }),
  enabled: flag('Stored, without effect.'),
  createdAt: instant('Creation'),
  updatedAt: instant('Last change'),
})

export const whoAmISchema = closed('WhoAmI', 'Whom a credential stands for.', {
  customerId: text('Its customer.', { minLength: 1 }),
  role: oneOf('Its role.', roles, 'Role'),
  projects: orNull(
    list('Ids of the projects that it reaches; null: all of the customer.', text('Id of a project.')),
  ),
  credits: integer('Current balance of the customer, credits.'),
})
