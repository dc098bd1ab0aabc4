/** Where the embedded servers report what happens to them; pino's shape, without the dependency on it. */
export interface EmbeddedLog {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

/** A start that cannot succeed, in one line for whoever runs the service. */
export class EmbeddedStartError extends Error {
  override readonly name = 'EmbeddedStartError'
}
