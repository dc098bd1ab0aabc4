/** What it means that the admin API refused, or failed: for the pass that asked, and for the status. */
import { mapSecrets } from '../../internal/domain/buffer-secrets.ts'
import type { BufferConfig } from '../../internal/domain/model.ts'
import type { BufferResource } from '../resource.ts'
import type { Asking, ReportedState } from './decision.ts'
import { ORPHAN_UNANSWERED_MS } from './deletion.ts'
import type { Observed } from './observed.ts'
import { AdminError, type KeyHolder } from './ports.ts'

/** Shorter values are no secrets, and would tear texts apart. */
const SHORTEST_SECRET = 4

/** What a refusal adds to what was observed; undefined: it ends the pass. */
export function afterRefusal(
  observed: Observed,
  { act, key }: Asking,
  error: AdminError,
): Observed | undefined {
  if (act === 'create' && error.kind === 'exists') return { ...observed, remote: undefined, taken: true }
  if (act === 'change' && error.kind === 'absent') return { ...observed, remote: 'absent' }
  if (act !== 'remove' || !(isKeyBad(error) || isUnansweredForLong(observed))) return undefined
  return { ...observed, refused: error, tried: [...(observed.tried ?? []), key] }
}

export function isKeyBad({ kind }: AdminError): boolean {
  return kind === 'unauthorized' || kind === 'forbidden'
}

/**
 * Why a key with which the buffer of a resource is not found would not find it either way; undefined: it would. A status of
 * an earlier version names no account.
 */
export function outOfReachOf({ spec, status }: BufferResource, key: KeyHolder): string | undefined {
  const owner = status?.customerId ?? key.customerId
  if (key.customerId !== owner)
    return `the API key is one of the account ${key.customerId}, and the buffer belongs to ${owner}`
  const reached = key.projects?.includes(spec.projectId) ?? true
  return reached ? undefined : `the API key does not reach the project ${spec.projectId}`
}

/** While the Secret is there the resource waits for as long as the service is away. */
function isUnansweredForLong({ key, mayStrand, strandedMs }: Observed): boolean {
  return !key.ok && mayStrand && strandedMs >= ORPHAN_UNANSWERED_MS
}

/** The service did nothing, for certain: an answer that is missing or says 5xx leaves that open. */
export function isRefusal({ kind }: AdminError): boolean {
  return kind !== 'unavailable'
}

/** `unmade`: it was to be created, and nothing of it is there. */
export function outcomeOf({ kind, message }: AdminError, unmade: boolean): ReportedState {
  const stalled = (reason: string): ReportedState => ({
    state: 'stalled',
    reason,
    message,
    ...(unmade && { disowned: true }),
  })
  switch (kind) {
    case 'invalid':
      return stalled('InvalidSpec')
    case 'unauthorized':
      return stalled('InvalidCredentials')
    case 'forbidden':
      return stalled('Forbidden')
    case 'full':
      return stalled('LimitReached')
    case 'suspended':
      return stalled('AccountSuspended')
    case 'throttled':
      return { state: 'retrying', reason: 'Throttled', message }
    default:
      return { state: 'retrying', reason: 'ServiceUnavailable', message }
  }
}

/** The words of a refusal are the service's: should it quote a value, it is not passed on. */
export function withoutSecrets(error: AdminError, { key, lastKeys, desired }: Observed): AdminError {
  const values = [key.ok ? key.value : undefined, ...lastKeys]
  if (desired.ok) {
    mapSecrets(desired.config as BufferConfig, (value) => {
      values.push(value)
      return value
    })
  }
  const message = values
    .filter((value) => value !== undefined && value.length >= SHORTEST_SECRET)
    .reduce<string>((text, value) => text.replaceAll(value!, '[redacted]'), error.message)
  const { retryAfterMs } = error
  return new AdminError(error.kind, message, {
    cause: error.cause,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}
