/** Every variable of the service: its name, what it accepts, and how it is read. */
import { isIPv4, isIPv6 } from 'node:net'

import { type Cidr, parseCidr } from '../../internal/delivery/addresses.ts'
import { isIdentifier } from '../../internal/domain/identifiers.ts'
import { accept, type Parsed, refuse } from '../../internal/domain/parsed.ts'
import { parseSecretKeys } from '../../internal/postgres/secrets.ts'
import { flag, hasScheme, integer, list, oneOf, type Setting, text, url } from './setting.ts'
import { parseSync, SYNC } from './sync.ts'

export interface OwnerKey {
  customerId: string
  /** `svk_…` */
  secret: string
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const NATS_URLS = 'nats:// or tls:// URLs, comma-separated'
const OWNER_KEYS = 'customer=svk_ pairs (48 lower-case hexadecimal characters after svk_), comma-separated'
const SECRET_KEYS = 'base64 of 32 bytes, or keyid:base64 pairs, comma-separated'
const BASE_URL = 'an http or https URL without credentials and query'
const BLOCKS = 'address blocks such as 10.0.0.0/8, comma-separated'
const PORTS = 'ports from 1 to 65535, comma-separated'
const NAME_SERVERS = 'addresses of name servers such as 10.0.0.10 or [fd00::10]:5353, comma-separated'
const STRIPE_KEY = 'a secret or restricted key of Stripe, sk_… or rk_…'
const STRIPE_SECRETS = 'one or two signing secrets of an endpoint, whsec_…, comma-separated'
const NAMESPACE = 'the name of a namespace'
const NAMESPACES = 'names of namespaces, comma-separated'
const LEASE = 'the name of a Lease'

/** Every variable of the service. */
export const SETTINGS = {
  host: text('PENSTOCK_HOST'),
  port: integer('PENSTOCK_PORT', 0, 65_535),
  opsPort: integer('PENSTOCK_OPS_PORT', 0, 65_535),
  dataDir: text('PENSTOCK_DATA_DIR'),
  natsUrls: { ...list('PENSTOCK_NATS_URL', NATS_URLS, natsUrl), secret: true },
  natsCredsFile: text('PENSTOCK_NATS_CREDS'),
  natsServerBin: text('NATS_SERVER_BIN'),
  databaseUrl: { ...url('PENSTOCK_DATABASE_URL', ['postgres', 'postgresql']), secret: true },
  shards: integer('PENSTOCK_SHARDS', 1, 1_024),
  replicas: integer('PENSTOCK_REPLICAS', 1, 5),
  subjects: oneOf('PENSTOCK_SUBJECTS', ['group', 'shard']),
  processes: integer('PENSTOCK_PROCESSES', 1, 64),
  catalogFile: text('PENSTOCK_CATALOG'),
  sync: { name: 'PENSTOCK_SYNC', accepts: SYNC, parse: parseSync },
  ownerKeys: { ...list('PENSTOCK_OWNER_KEYS', OWNER_KEYS, ownerKey), secret: true },
  secretKeys: { name: 'PENSTOCK_SECRET_KEY', accepts: SECRET_KEYS, parse: parseSecretKeys, secret: true },
  stripeKey: { name: 'PENSTOCK_STRIPE_KEY', accepts: STRIPE_KEY, parse: stripeKey, secret: true },
  stripeWebhookSecrets: {
    ...list('PENSTOCK_STRIPE_WEBHOOK_SECRETS', STRIPE_SECRETS, stripeSecret),
    secret: true,
  },
  stripeReturnUrl: url('PENSTOCK_STRIPE_RETURN_URL', ['https', 'http']),
  stripeOrigin: url('PENSTOCK_STRIPE_ORIGIN', ['https', 'http']),
  local: flag('PENSTOCK_LOCAL'),
  allowDestinations: list('PENSTOCK_ALLOW_DESTINATIONS', BLOCKS, cidr),
  destinationPorts: list('PENSTOCK_DESTINATION_PORTS', PORTS, port),
  dnsServers: list('PENSTOCK_DNS_SERVERS', NAME_SERVERS, nameServer),
  initialCredits: integer('PENSTOCK_INITIAL_CREDITS', 0, 1_000_000_000_000),
  oidcIssuer: url('PENSTOCK_OIDC_ISSUER', ['https', 'http']),
  oidcAudience: text('PENSTOCK_OIDC_AUDIENCE'),
  oidcJwksUrl: url('PENSTOCK_OIDC_JWKS_URL', ['https', 'http']),
  maxBodyBytes: integer('PENSTOCK_MAX_BODY_BYTES', 1, 64_000_000),
  maxBodiesBytes: integer('PENSTOCK_MAX_BODIES_BYTES', 1_000_000, 64_000_000_000),
  maxConnections: integer('PENSTOCK_MAX_CONNECTIONS', 1, 1_000_000),
  keyRequestsPerSecond: integer('PENSTOCK_KEY_REQUESTS_PER_SECOND', 0, 100_000),
  testsPerMinute: integer('PENSTOCK_TESTS_PER_MINUTE', 0, 100_000),
  signUpsPerMinute: integer('PENSTOCK_SIGN_UPS_PER_MINUTE', 0, 100_000),
  maxCustomers: integer('PENSTOCK_MAX_CUSTOMERS', 0, 1_000_000),
  maxProjects: integer('PENSTOCK_MAX_PROJECTS', 0, 1_000_000),
  maxBuffers: integer('PENSTOCK_MAX_BUFFERS', 0, 1_000_000),
  dlqRetentionDays: integer('PENSTOCK_DLQ_RETENTION_DAYS', 1, 3_650),
  dlqQuota: integer('PENSTOCK_DLQ_QUOTA', 1, 1_000_000_000),
  auditDays: integer('PENSTOCK_AUDIT_DAYS', 1, 3_650),
  adminUrl: { name: 'PENSTOCK_ADMIN_URL', accepts: BASE_URL, parse: baseUrl },
  adminCaFile: text('PENSTOCK_ADMIN_CA_FILE'),
  watchNamespaces: list('PENSTOCK_WATCH_NAMESPACES', NAMESPACES, namespace),
  leaseNamespace: { name: 'PENSTOCK_LEASE_NAMESPACE', accepts: NAMESPACE, parse: namespace },
  leaseName: { name: 'PENSTOCK_LEASE_NAME', accepts: LEASE, parse: leaseName },
  verifySeconds: integer('PENSTOCK_VERIFY_SECONDS', 1, 86_400),
  logLevel: oneOf('PENSTOCK_LOG_LEVEL', LOG_LEVELS),
} satisfies Record<string, Setting<unknown>>

function natsUrl(text: string): Parsed<string> {
  return hasScheme(text, ['nats', 'tls']) ? accept(text) : refuse(`must be ${NATS_URLS}`)
}

/** No credentials, for it stands in the log; no query, for paths are appended. */
function baseUrl(text: string): Parsed<string> {
  const address = hasScheme(text, ['http', 'https']) ? new URL(text) : undefined
  const plain = address && address.username === '' && address.password === '' && !/[?#]/.test(text)
  return plain ? accept(text) : refuse(`must be ${BASE_URL}`)
}

/** RFC 1123, as Kubernetes wants it. */
function namespace(text: string): Parsed<string> {
  const good = text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text)
  return good ? accept(text) : refuse(`must be ${NAMESPACE}`)
}

function leaseName(text: string): Parsed<string> {
  const good = text.length <= 253 && /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(text)
  return good ? accept(text) : refuse(`must be ${LEASE}`)
}

function cidr(text: string): Parsed<Cidr> {
  const value = parseCidr(text)
  return value === null ? refuse(`${text} is not an address block such as 10.0.0.0/8`) : accept(value)
}

function port(text: string): Parsed<number> {
  const value = Number(text)
  const good = /^\d+$/.test(text) && value >= 1 && value <= 65_535
  return good ? accept(value) : refuse(`${text} is not a port from 1 to 65535`)
}

/** An address, or an address with a port; one of IPv6 then stands in brackets. */
function nameServer(text: string): Parsed<string> {
  const [, v6 = '', v4 = '', port = '53'] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  const good = isIPv6(text) || ((isIPv6(v6) || isIPv4(v4)) && Number(port) >= 1 && Number(port) <= 65_535)
  return good ? accept(text) : refuse(`${text} is not an address of a name server such as 10.0.0.10:53`)
}

/** The value itself is not repeated: it holds a secret. */
function ownerKey(text: string): Parsed<OwnerKey> {
  const [, customerId, secret] = /^([^=]+)=(svk_[0-9a-f]{48})$/.exec(text) ?? []
  if (!isIdentifier(customerId) || secret === undefined) {
    return refuse(`must be ${OWNER_KEYS}`)
  }
  return accept({ customerId, secret })
}

/** The value itself is not repeated: it is a secret. */
function stripeKey(text: string): Parsed<string> {
  return /^[sr]k_(test|live)_\w{8,255}$/.test(text) ? accept(text) : refuse(`must be ${STRIPE_KEY}`)
}

function stripeSecret(text: string): Parsed<string> {
  return /^whsec_[\w+/=]{8,255}$/.test(text) ? accept(text) : refuse(`must be ${STRIPE_SECRETS}`)
}
