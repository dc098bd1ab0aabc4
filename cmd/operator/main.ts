/**
 * Makes buffers of Buffer resources (`operator/`). Every replica watches, so that it is ready to lead; one leads and
 * reconciles; one that loses the lead ends at once, for another has it.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { KubeConfig } from '@kubernetes/client-node'
import { runService } from '../../internal/runtime/process.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import { createLogger } from '../../internal/telemetry/logger.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { type Config, ConfigError, describeEnvironment, readConfig } from '../config/config.ts'
import { startOperator } from '../wiring/operator.ts'

const { version } = packageFile
/** What the loader of kubeconfigs makes up where it finds nothing at all. */
const NOWHERE = 'http://localhost:8080'
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

try {
  const config = readConfig(process.env, 'operator')
  run(config, readKubeConfig(), readAuthorities(config))
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

function run(config: Config, kube: KubeConfig, ca: string | undefined): void {
  const log = createLogger({ level: config.logLevel, role: config.role })
  const clock = systemClock()
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
    ({ lifecycle }) => startOperator({ config, kube, ca, version, log, clock, randomness, lifecycle }, lost),
  )
}

/** KUBECONFIG, the user's own file, or in a pod its service account. */
function readKubeConfig(): KubeConfig {
  const kube = new KubeConfig()
  try {
    kube.loadFromDefault()
  } catch (cause) {
    throw new ConfigError(`KUBECONFIG: ${(cause as Error).message}`, { cause })
  }
  const problem = problemOf(kube)
  if (problem !== undefined) throw new ConfigError(`KUBECONFIG: ${problem}`)
  return kube
}

/** The loader takes any file for good; without a cluster every request would fail for good. */
function problemOf(kube: KubeConfig): string | undefined {
  const name = kube.getCurrentContext()
  if (!name) return 'has no current context'
  const context = kube.getContextObject(name)
  if (context === null) return `has no context ${name}`
  const cluster = kube.getCurrentCluster()
  if (cluster === null) return `the context ${name} names a cluster that is not there: ${context.cluster}`
  if (cluster.server === NOWHERE) return 'names no cluster, and this is no pod of one'
  if (!context.user || kube.getCurrentUser() !== null) return undefined
  return `the context ${name} names a user that is not there: ${context.user}`
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
