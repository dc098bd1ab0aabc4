import { closed, flag, map, oneOf, text } from './shape.ts'

/** docs/reference/api.md, "Ingest" and "Health". */

export const acceptedSchema = closed(
  'Accepted',
  'A webhook that is stored.',
  {
    status: oneOf('Always `accepted`.', ['accepted']),
    messageId: text('Message id: the sender’s own or a UUID.', { minLength: 1 }),
    itemId: text('Identifier of the item; of a duplicate, the original’s.', { minLength: 1 }),
    duplicate: flag('Present and true when the original is still buffered; costs nothing.'),
  },
  ['duplicate'],
)

export const serviceEntrySchema = closed('ServiceEntry', 'What answers at this address.', {
  service: oneOf('Its name.', ['Penstock']),
  version: text('Version of the software.', { minLength: 1 }),
  links: map(
    'ServiceLinks',
    'Paths by what they are for: health, ingest, docs, openapi, whoami. A node of a cluster lists what it serves.',
    text('A path at this address.', { minLength: 1 }),
  ),
})

export const healthSchema = closed('Health', 'Whether the service can work.', {
  status: oneOf('`ok` while no check is down.', ['ok', 'unavailable']),
  version: text('Version of the service.', { minLength: 1 }),
  checks: map(
    'HealthChecks',
    'State of each dependency by its name; `secrets` is `degraded` while rows lack their key.',
    oneOf(
      'Whether it answers; `degraded`: for some of what is stored.',
      ['ok', 'degraded', 'down'],
      'HealthCheck',
    ),
  ),
})
