/**
 * Secrets of a buffer: signing and source verification secrets and the values of delivery headers. A viewer
 * sees `[redacted]`, and that text sent back keeps the stored value (docs/architecture/protocol.md, "Admin requests").
 */
import type { Buffer, BufferConfig } from './model.ts'
import { accept, type Parsed, refuse } from './parsed.ts'
import { joinProblems } from './schema-fault.ts'

export const REDACTED = '[redacted]'

/** Calls `map` for every secret with its field path; a field that is absent stays absent. */
export function mapSecrets<T extends BufferConfig>(
  config: T,
  map: (value: string, path: string[]) => string,
): T {
  const { delivery, sourceVerification } = config
  const { signing, headers } = delivery
  const secret = sourceVerification?.signingSecret
  return {
    ...config,
    delivery: {
      ...delivery,
      ...(signing && {
        signing: { ...signing, secret: map(signing.secret, ['delivery', 'signing', 'secret']) },
      }),
      ...(headers && { headers: mapHeaders(headers, map) }),
    },
    ...(sourceVerification &&
      secret !== undefined && {
        sourceVerification: {
          ...sourceVerification,
          signingSecret: map(secret, ['sourceVerification', 'signingSecret']),
        },
      }),
  }
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
 * Puts the stored secret wherever `config` holds the placeholder. Error: nothing is stored there, so the
 * placeholder would become the secret. `stored` is undefined at creation.
 */
export function restoreSecrets(config: BufferConfig, stored?: BufferConfig): Parsed<BufferConfig> {
  const orphans: string[] = []
  const restored = mapSecrets(config, (value, path) => {
    if (value !== REDACTED) return value
    const kept = stored && valueAt(stored, path)
    if (typeof kept === 'string') return kept
    orphans.push(`${path.join('.')} is ${REDACTED}, but none is stored`)
    return value
  })
  return orphans.length === 0 ? accept(restored) : refuse(joinProblems(orphans))
}

function valueAt(root: object, path: string[]): unknown {
  let value: unknown = root
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
