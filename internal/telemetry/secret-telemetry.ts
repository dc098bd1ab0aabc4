/** Secrets that cannot be read: a gauge of the rows whose key is missing, and lines that name what is concerned. */
import type { Meter } from '@opentelemetry/api'
import type { Logger } from './logger.ts'

/** Rows of a table whose key is missing. */
export interface MissingKey {
  readonly table: string
  readonly keyId: string
  readonly rows: number
}

export interface SecretTelemetry {
  /** All that there are now. A line when it is not what it was. */
  rowsWithoutKey(missing: readonly MissingKey[]): void
  /** `error` names the field and the key, never the value. */
  unreadable(buffer: { bufferId: string; uid: string; error: string }): void
}

export function createSecretTelemetry(log: Logger, meter: Meter): SecretTelemetry {
  const latest = new Map<string, MissingKey>()
  let told = ''
  meter
    .createObservableGauge('penstock_secret_rows_without_key', {
      description: 'Rows with secrets of a key that is not configured',
    })
    .addCallback((result) => {
      for (const { table, keyId, rows } of latest.values()) result.observe(rows, { table, key: keyId })
    })
  return {
    rowsWithoutKey(missing) {
      // OpenTelemetry repeats what it was told of a label once: what is over must show as none.
      for (const [name, { table, keyId }] of latest) latest.set(name, { table, keyId, rows: 0 })
      for (const each of missing) latest.set(`${each.table} ${each.keyId}`, each)
      const now = JSON.stringify(missing)
      if (now === told || (told === '' && missing.length === 0)) return
      told = now
      if (missing.length > 0) log.warn({ missing }, 'keys of secrets are missing')
      else log.info('no key of a secret is missing any more')
    },
    unreadable(buffer) {
      log.warn(buffer, 'a secret cannot be read')
    },
  }
}
