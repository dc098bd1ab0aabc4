/**
 * The configuration of a process: environment → parsed, defaulted, validated once (docs/architecture/protocol.md,
 * "Configuration"). The only reader of the environment besides OpenTelemetry's own variables; only `cmd` calls it. An
 * empty variable counts as unset.
 */
import { availableParallelism } from 'node:os'

import { type Cidr, parseCidr } from '../../internal/delivery/addresses.ts'
import type { DeadLetterLimits } from '../../internal/dlq/sweep.ts'
import { misreadsNames } from '../../internal/domain/json.ts'
import { MAX_CONNECTIONS } from '../../internal/http/listener.ts'
import { isLoopback } from '../../internal/http/own-requests.ts'
import type { SecretKey } from '../../internal/postgres/secrets.ts'
import type { Setting } from './setting.ts'
import { type OwnerKey, SETTINGS } from './settings.ts'
import { NATS_SYNC } from './sync.ts'

export type ProcessRole = 'penstock' | 'cluster' | 'ingress' | 'admin' | 'actor' | 'operator' | 'migrate'

export interface OidcConfig {
  issuer: string
  audience: string
  /** undefined: found by discovery. */
  jwksUrl: string | undefined
}

export interface StripeConfig {
  key: string
  /** One or two: the old and the new one while they change. None: notifications have no route. */
  webhookSecrets: string[]
  /** Where checkouts and the portal lead back to. */
  returnUrl: string
  /** undefined: Stripe's own. */
  origin: string | undefined
}

/** What only the operator reads. */
export interface OperatorConfig {
  /** Base address of the management API; set for the operator. */
  adminUrl: string | undefined
  /** PEM of the authorities to trust for it; undefined: the machine's. */
  adminCaFile: string | undefined
  /** undefined: all. */
  watchNamespaces: string[] | undefined
  /** undefined: the namespace that the operator runs in. */
  leaseNamespace: string | undefined
  leaseName: string
  /** How often a buffer is compared with its resource when neither changed, seconds. */
  verifySeconds: number
}

export interface Config {
  role: ProcessRole
  host: string
  /** 0: any free port. */
  port: number
  /** 0: any free port. */
  opsPort: number
  dataDir: string
  /** `nats://` or `tls://` URLs; undefined: embedded. */
  natsUrls: string[] | undefined
  natsCredsFile: string | undefined
  natsServerBin: string | undefined
  /** undefined: embedded. */
  databaseUrl: string | undefined
  /** undefined: the count of the first start, at first `defaultShards`. */
  shards: number | undefined
  replicas: number
  subjects: 'group' | 'shard'
  processes: number
  catalogFile: string | undefined
  /** When the broker writes to disk: `always`, or an interval as nats-server reads it. */
  sync: string
  /** undefined: customer `local` with a generated key. */
  ownerKeys: OwnerKey[] | undefined
  /** The first encrypts, all decrypt; undefined: generated in the data folder. */
  secretKeys: SecretKey[] | undefined
  local: boolean
  allowDestinations: Cidr[]
  /** Those that deliveries may reach; undefined: all. */
  destinationPorts: number[] | undefined
  /** Addresses with their ports; undefined: those of resolv.conf. */
  dnsServers: string[] | undefined
  /** Credits granted to a new customer. */
  initialCredits: number
  /** undefined: ID tokens are off. */
  oidc: OidcConfig | undefined
  /** undefined: no payments by Stripe. */
  stripe: StripeConfig | undefined
  maxBodyBytes: number
  /** Of the bodies that arrive or wait for their answer. */
  maxBodiesBytes: number
  maxConnections: number
  /** Management requests of one key in a process; this and the next five: 0 is no limit. */
  keyRequestsPerSecond: number
  /** Test deliveries of one buffer in a process. */
  testsPerMinute: number
  /** Customers made by ID tokens in a process. */
  signUpsPerMinute: number
  /** That one customer creates. */
  maxCustomers: number
  /** Of one customer. */
  maxProjects: number
  /** Of one customer. */
  maxBuffers: number
  deadLetters: DeadLetterLimits
  /** So long a record of the audit is kept, days. */
  auditDays: number
  operator: OperatorConfig
  logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
}

/** The start is refused; the message is one line that names the variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

const PLACES = { port: 8_080, opsPort: 9_464, dataDir: '.penstock', replicas: 1 }
/** Several nodes on one machine: none has the ports of `npm start`, nor its data. */
const CLUSTER_PLACES = { port: 0, opsPort: 0, dataDir: '.penstock-cluster', replicas: 3 }
const LOOPBACK = '127.0.0.1'
/** Reached by the deliveries of the local instance beside public addresses. */
export const LOCAL_DESTINATIONS = ['127.0.0.0/8', '::1']

type Settings = typeof SETTINGS
type Given = { [K in keyof Settings]?: Settings[K] extends Setting<infer T> ? T : never }
type Environment = Readonly<Record<string, string | undefined>>

/** What `role` cannot start without. */
export function requiredFor(role: ProcessRole, local: boolean): (keyof Settings)[] {
  switch (role) {
    case 'operator':
      return ['adminUrl']
    case 'migrate':
      return ['databaseUrl']
    case 'penstock':
    case 'cluster':
      return local ? [] : ['secretKeys']
    default:
      return ['natsUrls', 'databaseUrl', 'secretKeys']
  }
}

/** Throws ConfigError for the first unknown `PENSTOCK_*` name, bad value or missing variable. */
export function readConfig(env: Environment, role: ProcessRole): Config {
  refuseRuntime()
  refuseUnknown(env)
  const given = readSettings(env)
  const local = given.local ?? isLocalByDefault(role, given.host ?? LOOPBACK)
  const config = withDefaults(given, role, local)
  refuseMissing(config, given)
  refuseNarrow(config)
  return config
}

function refuseRuntime(): void {
  if (misreadsNames())
    throw new ConfigError(`Node ${process.version} misreads JSON (nodejs/node#63785): use 26.12.1 or later`)
}

/**
 * Who can reach it may make credits, and sees what was delivered to its receiver. So where other machines can, it has to be
 * asked for (docs/architecture/protocol.md, "The local instance").
 */
function isLocalByDefault(role: ProcessRole, host: string): boolean {
  return bringsServers(role) && isLoopback(host)
}

/** The programs that run a whole installation on this machine, with servers and secrets of their own. */
function bringsServers(role: ProcessRole): boolean {
  return role === 'penstock' || role === 'cluster'
}

/** Half the cores, 1 to 8: each further shard splits the packs (docs/decisions/0028-one-shard-on-two-cores.md). */
export function defaultShards(cores: number = availableParallelism()): number {
  return Math.min(8, Math.max(1, Math.floor(cores / 2)))
}

/** Half the cores, 1 to 16: the servers, the collector's threads and the kernel have the others. */
export function defaultProcesses(cores: number = availableParallelism()): number {
  return Math.min(16, Math.max(1, Math.floor(cores / 2)))
}

/** For the start-up summary: each variable that is set, and what holds for it; secrets as `set`. */
export function describeEnvironment(env: Environment): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const setting of Object.values(SETTINGS) as Setting<unknown>[]) {
    const value = env[setting.name]
    if (setting.secret) shown[setting.name] = value ? 'set' : 'unset'
    else if (value) shown[setting.name] = value
  }
  return shown
}

function refuseUnknown(env: Environment): void {
  const known = new Set((Object.values(SETTINGS) as Setting<unknown>[]).map(({ name }) => name))
  const unknown = Object.keys(env).find((name) => name.startsWith('PENSTOCK_') && !known.has(name))
  if (unknown !== undefined) throw new ConfigError(`${unknown}: no such variable`)
}

function readSettings(env: Environment): Given {
  const given: Record<string, unknown> = {}
  for (const [field, setting] of Object.entries(SETTINGS) as [string, Setting<unknown>][]) {
    const value = env[setting.name]
    if (value === undefined || value === '') continue
    const parsed = setting.parse(value)
    if (!parsed.ok) throw new ConfigError(`${setting.name}: ${parsed.error}`)
    given[field] = parsed.value
  }
  return given as Given
}

function withDefaults(given: Given, role: ProcessRole, local: boolean): Config {
  const places = role === 'cluster' ? CLUSTER_PLACES : PLACES
  return {
    role,
    local,
    host: given.host ?? LOOPBACK,
    port: given.port ?? places.port,
    opsPort: given.opsPort ?? places.opsPort,
    dataDir: given.dataDir ?? places.dataDir,
    natsUrls: given.natsUrls,
    natsCredsFile: given.natsCredsFile,
    natsServerBin: given.natsServerBin,
    databaseUrl: given.databaseUrl,
    shards: given.shards,
    replicas: given.replicas ?? places.replicas,
    subjects: given.subjects ?? 'group',
    processes: given.processes ?? (role === 'penstock' ? defaultProcesses() : 1),
    catalogFile: given.catalogFile,
    // A broker of somebody else is taken for one that is not configured.
    sync: given.sync ?? (given.natsUrls === undefined ? 'always' : NATS_SYNC),
    ownerKeys: given.ownerKeys,
    secretKeys: given.secretKeys,
    allowDestinations:
      given.allowDestinations ?? (local ? LOCAL_DESTINATIONS.map((each) => parseCidr(each)!) : []),
    destinationPorts: given.destinationPorts,
    dnsServers: given.dnsServers,
    initialCredits: given.initialCredits ?? (local ? 100_000 : 0),
    oidc: oidc(given, local),
    stripe: stripe(given, local),
    maxBodyBytes: given.maxBodyBytes ?? 1_000_000,
    maxBodiesBytes: given.maxBodiesBytes ?? 64_000_000,
    maxConnections: given.maxConnections ?? MAX_CONNECTIONS,
    keyRequestsPerSecond: given.keyRequestsPerSecond ?? (local ? 0 : 10),
    testsPerMinute: given.testsPerMinute ?? (local ? 0 : 30),
    signUpsPerMinute: given.signUpsPerMinute ?? (local ? 0 : 60),
    maxCustomers: given.maxCustomers ?? (local ? 0 : 100),
    maxProjects: given.maxProjects ?? (local ? 0 : 100),
    maxBuffers: given.maxBuffers ?? (local ? 0 : 1_000),
    deadLetters: {
      ...(given.dlqRetentionDays !== undefined && { retentionDays: given.dlqRetentionDays }),
      ...(given.dlqQuota !== undefined && { quota: given.dlqQuota }),
    },
    auditDays: given.auditDays ?? 90,
    operator: {
      adminUrl: given.adminUrl,
      adminCaFile: given.adminCaFile,
      watchNamespaces: given.watchNamespaces,
      leaseNamespace: given.leaseNamespace,
      leaseName: given.leaseName ?? 'penstock-operator',
      verifySeconds: given.verifySeconds ?? 300,
    },
    logLevel: given.logLevel ?? 'info',
  }
}

function oidc(given: Given, local: boolean): OidcConfig | undefined {
  const { oidcIssuer: issuer, oidcAudience: audience, oidcJwksUrl: jwksUrl } = given
  if (issuer === undefined) {
    if (audience === undefined && jwksUrl === undefined) return undefined
    throw new ConfigError('PENSTOCK_OIDC_ISSUER: is required with the other PENSTOCK_OIDC_ variables')
  }
  if (audience === undefined)
    throw new ConfigError('PENSTOCK_OIDC_AUDIENCE: is required with PENSTOCK_OIDC_ISSUER')
  checkProviderUrl('PENSTOCK_OIDC_ISSUER', issuer, local)
  // Discovery appends a path to it, and tokens repeat it letter by letter.
  if (/[?#]/.test(issuer)) throw new ConfigError('PENSTOCK_OIDC_ISSUER: must have no query and no fragment')
  if (jwksUrl !== undefined) checkProviderUrl('PENSTOCK_OIDC_JWKS_URL', jwksUrl, local)
  return { issuer, audience, jwksUrl }
}

function stripe(given: Given, local: boolean): StripeConfig | undefined {
  const { stripeKey: key, stripeWebhookSecrets: webhookSecrets = [], stripeReturnUrl: returnUrl } = given
  if (key === undefined) {
    if (given.stripeWebhookSecrets === undefined && returnUrl === undefined && !given.stripeOrigin)
      return undefined
    throw new ConfigError('PENSTOCK_STRIPE_KEY: is required with the other PENSTOCK_STRIPE_ variables')
  }
  if (returnUrl === undefined)
    throw new ConfigError('PENSTOCK_STRIPE_RETURN_URL: is required with PENSTOCK_STRIPE_KEY')
  if (webhookSecrets.length > 2)
    throw new ConfigError('PENSTOCK_STRIPE_WEBHOOK_SECRETS: must be one or two secrets')
  checkProviderUrl('PENSTOCK_STRIPE_RETURN_URL', returnUrl, local)
  if (given.stripeOrigin) checkProviderUrl('PENSTOCK_STRIPE_ORIGIN', given.stripeOrigin, local)
  return { key, webhookSecrets, returnUrl, origin: given.stripeOrigin }
}

/** The value is not repeated: a password may be in it. */
function checkProviderUrl(name: string, address: string, local: boolean): void {
  const { protocol, username, password } = new URL(address)
  if (protocol !== 'https:' && !local)
    throw new ConfigError(`${name}: must be https outside the local instance`)
  if (username !== '' || password !== '') throw new ConfigError(`${name}: must hold no user and no password`)
}

/** Else the largest body would be told to try again for ever. */
function refuseNarrow({ maxBodyBytes, maxBodiesBytes }: Config): void {
  if (maxBodiesBytes < maxBodyBytes) {
    throw new ConfigError('PENSTOCK_MAX_BODIES_BYTES: must be at least PENSTOCK_MAX_BODY_BYTES')
  }
}

/** Who brings no servers and secrets of its own must be told what it works with. */
function refuseMissing(config: Config, given: Given): void {
  if (given.natsCredsFile !== undefined && given.natsUrls === undefined) {
    throw new ConfigError('PENSTOCK_NATS_URL: is required with PENSTOCK_NATS_CREDS')
  }
  const missing = requiredFor(config.role, config.local).find((field) => given[field] === undefined)
  if (missing !== undefined)
    throw new ConfigError(`${SETTINGS[missing].name}: is required ${whereRequired(config, given)}`)
}

function whereRequired({ role, host }: Config, given: Given): string {
  if (!bringsServers(role)) return `for ${role}`
  const outside = 'outside the local instance'
  return given.local === undefined
    ? `${outside}; on ${host}, which others may reach, it is one only with PENSTOCK_LOCAL=true`
    : outside
}
