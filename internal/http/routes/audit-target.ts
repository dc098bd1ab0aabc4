import { type AuditTarget, auditTargets, boundedText } from '../../domain/audit.ts'
import { IDENTIFIER_MAX_LENGTH } from '../../domain/identifiers.ts'

/** What a request was about, as far as it is known. */
export interface RequestParts {
  /** Of the caller. */
  readonly customerId: string
  readonly params: Readonly<Record<string, string>>
  /** The validated body. */
  readonly body: unknown
  /** The body of a success. */
  readonly answer: unknown
}

/**
 * The ids that name it: those of the path, then of the body, then of the answer, which names what was created. Nothing
 * else of a body is looked at, so no secret gets into the audit. The caller's own customer goes without saying.
 */
export function targetOf({ customerId, params, body, answer }: RequestParts): AuditTarget {
  const named = auditTargets.map((name) => [
    name,
    idIn(params, name) ?? idIn(body, name) ?? idIn(answer, name),
  ])
  const target = Object.fromEntries(named.filter(([, id]) => id !== undefined)) as Record<string, string>
  const made = idIn(answer, 'bufferId')
  if (made !== undefined && made !== target.bufferId) target.cloneId = made
  if (target.customerId === customerId) delete target.customerId
  return target
}

/** A path may name anything: what can be no id is kept, shortened. */
function idIn(source: unknown, name: string): string | undefined {
  if (typeof source !== 'object' || source === null || !Object.hasOwn(source, name)) return undefined
  const id = (source as Record<string, unknown>)[name]
  return typeof id === 'string' ? boundedText(id, IDENTIFIER_MAX_LENGTH) : undefined
}
