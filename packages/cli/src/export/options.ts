// Made by npm run crd from operator/export/options.ts. Change that one.
/** What must be right about the options before anything is made of them. */
import { ExportError, type ExportOptions } from './buffer.ts'
import { isNamespaceName, isObjectName } from './names.ts'

export const DEFAULT_CREDENTIALS_SECRET = 'penstock-api-key'

/** Headers whose values stay secret, whatever is asked. */
const CREDENTIAL = /auth|bearer|cookie|credential|jwt|key|pass|secret|session|sign|token/i

/** Throws an ExportError that names the option. */
export function checkOptions({ namespace, credentialsSecret, plainHeaders }: ExportOptions): void {
  if (namespace !== undefined && !isNamespaceName(namespace))
    throw new ExportError('--namespace must be a name of a namespace: 1 to 63 of a-z, 0-9 and "-"')
  if (!isObjectName(credentialsSecret))
    throw new ExportError(
      '--credentials-secret must be a name of a Secret: 1 to 253 of a-z, 0-9, "." and "-"',
    )
  const secret = plainHeaders.find((name) => CREDENTIAL.test(name))
  if (secret !== undefined)
    throw new ExportError(
      `--plain-header ${secret}: the name suggests a credential, so its value is never printed`,
    )
}
