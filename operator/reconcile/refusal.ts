/** What it means that the admin API refused, or failed: for the pass that asked, and for the status. */
import { mapSecrets } from '../../internal/domain/buffer-secrets.ts'
import type { BufferConfig } from '../../internal/domain/model.ts'
import type { Asking, Outcome } from './decide.ts'
import type { Observed } from './observed.ts'
import { AdminError } from './ports.ts'

/** Shorter values are no secrets, and would tear texts apart. */
const SHORTEST_SECRET = 4

/** What a refusal adds to what was observed; undefined: it ends the pass. */
export function afterRefusal(observed: Observed, { act }: Asking, error: AdminError): Observed | undefined {
  if (act === 'create' && error.kind === 'exists') return { ...observed, remote: undefined, taken: true }
  if (act === 'change' && error.kind === 'absent') return { ...observed, remote: 'absent' }
  const keyIsBad = error.kind === 'unauthorized' || error.kind === 'forbidden'
  return act === 'remove' && keyIsBad ? { ...observed, refused: error } : undefined
}

/** The service did nothing, for certain: an answer that is missing or says 5xx leaves that open. */
export function isRefusal({ kind }: AdminError): boolean {
  return kind !== 'unavailable'
}

/** `unmade`: it was to be created, and nothing of it is there. */
export function outcomeOf({ kind, message }: AdminError, unmade: boolean): Outcome {
  const stalled = (reason: string): Outcome => ({
    ...{ state: 'stalled', reason, message },
    ...(unmade && { disowned: true }),
  })
  switch (kind) {
    case 'invalid':
      return stalled('InvalidSpec')
    case 'unauthorized':
      return stalled('InvalidCredentials')
    case 'forbidden':
      return stalled('Forbidden')
    case 'throttled':
      return { state: 'retrying', reason: 'Throttled', message }
    default:
      return { state: 'retrying', reason: 'ServiceUnavailable', message }
  }
}

/** The words of a refusal are the service's: should it quote a value, it is not passed on. */
export function withoutSecrets(error: AdminError, { key, lastKey, wish }: Observed): AdminError {
  const values = [key.ok ? key.value : undefined, lastKey]
  if (wish.ok) {
    mapSecrets(wish.config as BufferConfig, (value) => {
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
