import type { Endpoint } from '../routes/route.ts'

/** The request body's schema under `components.schemas`: its title, else `CreateProjectRequest`. */
export function requestNameOf({ operationId, body }: Endpoint): string {
  const name = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Request`
  return typeof body?.title === 'string' ? body.title : name
}
