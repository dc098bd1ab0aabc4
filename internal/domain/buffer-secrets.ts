/**
 * Secrets of a buffer: signing and source verification secrets (the previous one too) and the values of delivery
 * headers. A viewer sees `[redacted]`, and that text sent back keeps the stored value (docs/architecture/protocol.md,
 * "Admin requests").
 */
import type { Buffer, BufferConfig, SourceVerification } from './model.ts'
import { accept, type Parsed, refuse } from './parsed.ts'
import { joinProblems } from './schema-fault.ts'

export const REDACTED = '[redacted]'
/** Stands for a stored secret that cannot be opened: its key is missing, or its text is damaged. */
export const UNREADABLE = '[unreadable]'

/** Calls `map` for every secret with its field path; a field that is absent stays absent. */
export function mapSecrets<T extends BufferConfig>(
  config: T,
  map: (value: string, path: string[]) => string,
): T {
  const { delivery, sourceVerification } = config
  const { signing, headers } = delivery
  return {
    ...config,
    delivery: {
      ...delivery,
      ...(signing && {
        signing: { ...signing, secret: map(signing.secret, ['delivery', 'signing', 'secret']) },
      }),
      ...(headers && { headers: mapHeaders(headers, map) }),
    },
    ...(sourceVerification && { sourceVerification: mapSource(sourceVerification, map) }),
  }
}

function mapSource(source: SourceVerification, map: (value: string, path: string[]) => string) {
  const mapped = { ...source }
  for (const name of ['signingSecret', 'previousSecret'] as const) {
    const secret = source[name]
    if (secret !== undefined) mapped[name] = map(secret, ['sourceVerification', name])
  }
  return mapped
}

/** `Object.fromEntries` defines own properties, so no name, however hostile, reaches a setter. */
function mapHeaders(headers: Record<string, string>, map: (value: string, path: string[]) => string) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, map(value, ['delivery', 'headers', name])]),
  )
}

/** The buffer as a viewer may see it. */
export function redactBuffer(buffer: Buffer): Buffer {
  return mapSecrets(buffer, () => REDACTED)
}

/**
 * Puts the stored secret wherever `config` holds a placeholder. Error: nothing is stored there, so the
 * placeholder would become the secret. `stored` is undefined at creation. What cannot be opened stays `UNREADABLE`, and
 * whoever writes keeps its sealed text.
 */
export function restoreSecrets(config: BufferConfig, stored?: BufferConfig): Parsed<BufferConfig> {
  const orphans: string[] = []
  const restored = mapSecrets(config, (value, path) => {
    if (value !== REDACTED && value !== UNREADABLE) return value
    const kept = stored && secretAt(stored, path)
    if (kept !== undefined) return kept
    orphans.push(`${path.join('.')} is ${value}, but none is stored`)
    return value
  })
  return orphans.length === 0 ? accept(restored) : refuse(joinProblems(orphans))
}

/** The secret at a path of `mapSecrets`; undefined: there is none. */
export function secretAt(config: object, path: readonly string[]): string | undefined {
  let value: unknown = config
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return typeof value === 'string' ? value : undefined
}
