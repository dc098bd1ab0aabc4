/** The OpenAPI document as tests judge by it: strictly, where what is published must bear with later versions. */
import { openApiDocument } from '../../internal/http/openapi/document.ts'

/** Its objects are closed: an answer with a member that it does not know is a fault of today, though clients bear it. */
export function judgedDocument(): unknown {
  return judged(openApiDocument())
}

function judged(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(judged)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name, judged(member)])
  return closed(Object.fromEntries(members))
}

function closed(schema: Record<string, unknown>): Record<string, unknown> {
  const isOpen = schema.type === 'object' && 'properties' in schema && !('additionalProperties' in schema)
  return isOpen ? { ...schema, additionalProperties: false } : schema
}
