/** Name of the request body's schema under `components.schemas`: `CreateBufferRequest`. */
export function requestNameOf(operationId: string): string {
  return `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Request`
}
