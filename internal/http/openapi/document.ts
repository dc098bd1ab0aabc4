import type { Endpoint, Route } from '../routes/route.ts'
import { errorsOf } from '../routes/row-errors.ts'
import { adminTable, type Services } from '../routes/table.ts'
import { responseSchemas } from '../schemas/registry.ts'
import type { Schema } from '../schemas/shape.ts'
import { Components } from './components.ts'
import { requestNameOf } from './names.ts'
import { managementOperation, publicOperation } from './operation.ts'
import { publicEndpoints } from './public-endpoints.ts'
import { refusalExamples } from './responses.ts'
import { tags } from './tags.ts'

/**
 * The OpenAPI 3.0.3 document (docs/reference/api.md, "Conventions"): derived from the route table and the registry of
 * response schemas, so it says what the router does and the validators check. It is the same for every
 * installation; what only the local instance has says so itself.
 */
export type OpenApiDocument = Readonly<Record<string, unknown>>

/** Version of the interface, not of the software. */
const INTERFACE_VERSION = '1.0.0'

const DESCRIPTION = `Buffers webhooks by group key and delivers each group as one batched, signed HTTP request.

Every refusal carries an \`error\` text and, where programs need one, a \`code\`. Beside the answers listed at
each operation, an unknown path is 404, a method that a path lacks 405, an expectation other than \`100-continue\` 417, headers beyond 32 KB 431 and what is no HTTP 400, all with the same
body. What an endpoint answers carries \`X-Request-Id\`, \`Cache-Control: no-store\`
and \`X-Content-Type-Options: nosniff\`.`

export function openApiDocument(): OpenApiDocument {
  const rows = documentedTable()
  return {
    openapi: '3.0.3',
    info: {
      title: 'Penstock',
      version: INTERFACE_VERSION,
      description: DESCRIPTION,
      license: { name: 'Proprietary' },
    },
    servers: [{ url: '/', description: 'The address that this document came from.' }],
    tags,
    paths: pathsOf([
      ...publicEndpoints.map((row): [Endpoint, Schema] => [row, publicOperation(row)]),
      ...rows.map((row): [Endpoint, Schema] => [row, managementOperation(row)]),
    ]),
    components: {
      securitySchemes: securitySchemes(),
      schemas: componentSchemas([...publicEndpoints, ...rows]),
      examples: refusalExamples([
        ...new Set([...publicEndpoints.flatMap((row) => row.errors), ...rows.flatMap(errorsOf)]),
      ]),
    },
  }
}

/** Every management endpoint that there is anywhere. Rows call their services only when they are asked. */
export function documentedTable(): Route[] {
  return adminTable({ local: true } as Services)
}

function pathsOf(operations: readonly [Endpoint, Schema][]): Schema {
  const byPath = Map.groupBy(operations, ([row]) => row.path)
  return Object.fromEntries(
    [...byPath].map(([path, some]) => [
      path,
      Object.fromEntries(some.map(([row, operation]) => [row.method.toLowerCase(), operation])),
    ]),
  )
}

function componentSchemas(rows: readonly Endpoint[]): Schema {
  const components = new Components()
  for (const schema of Object.values(responseSchemas)) components.answer(schema)
  for (const row of rows) if (row.body !== undefined) components.request(row.body, requestNameOf(row))
  return components.all()
}

function securitySchemes(): Schema {
  return {
    apiKey: {
      type: 'apiKey',
      in: 'header',
      name: 'X-API-Key',
      description: '`svk_` and 48 hexadecimal characters. It decides when an ID token is sent too.',
    },
    idToken: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'ID token of the identity provider.',
    },
  }
}
