/**
 * Makes buffers of Buffer resources (`operator/`). Every replica watches, so that it is ready to lead; one leads and
 * reconciles; one that loses the lead ends at once, for another has it.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Clock } from '../../internal/runtime/clock.ts'
import { runService } from '../../internal/runtime/process.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import { createLogger } from '../../internal/telemetry/logger.ts'
import type { ClusterAccess } from '../../operator/kubernetes/access.ts'
import { isInPod, serviceAccountAccess } from '../../operator/kubernetes/service-account.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { type Config, ConfigError, describeEnvironment, readConfig } from '../config/config.ts'
import { startOperator } from '../wiring/operator.ts'

const { version } = packageFile
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** `serviceAccount`: where a pod has its token, if not where Kubernetes mounts it. */
export async function runOperator(serviceAccount?: string): Promise<void> {
  const clock = systemClock()
  try {
    const config = readConfig(process.env, 'operator')
    run(config, await readAccess(clock, serviceAccount), readAuthorities(config), clock)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}

function run(config: Config, access: ClusterAccess, ca: string | undefined, clock: Clock): void {
  const log = createLogger({ level: config.logLevel, role: config.role })
  const randomness = systemRandomness()
  log.info({ environment: describeEnvironment(process.env), version }, 'starting')
  // Not a moment longer: passes that still run would write beside those of the next leader.
  const lost = (error: Error) => {
    log.fatal(error.message)
    process.exit(1)
  }
  runService(
    clock,
    log,
    (error) => log.fatal({ err: error }, 'the start failed'),
    ({ lifecycle }) =>
      startOperator({ config, access, ca, version, log, clock, randomness, lifecycle }, lost),
  )
}

/** A kubeconfig where there is one, and otherwise the pod's service account, below `serviceAccount`. */
async function readAccess(clock: Clock, serviceAccount: string | undefined): Promise<ClusterAccess> {
  const inPod = isInPod(process.env, serviceAccount)
  try {
    if (inPod) return serviceAccountAccess(process.env, clock, serviceAccount)
    const { readKubeconfig } = await import('../../operator/kubernetes/kubeconfig.ts')
    return readKubeconfig()
  } catch (cause) {
    const source = inPod ? 'service account' : 'KUBECONFIG'
    throw new ConfigError(`${source}: ${(cause as Error).message}`, { cause })
  }
}

function readAuthorities({ operator: { adminCaFile } }: Config): string | undefined {
  if (adminCaFile === undefined) return undefined
  try {
    const text = readFileSync(adminCaFile, 'utf8')
    const certificates = text.match(CERTIFICATE)
    if (certificates === null) throw new Error('holds no certificate in PEM')
    // TLS passes over what it cannot read, and then trusts nobody.
    for (const certificate of certificates) new X509Certificate(certificate)
    return text
  } catch (cause) {
    throw new ConfigError(`PENSTOCK_ADMIN_CA_FILE: ${(cause as Error).message}`, { cause })
  }
}
