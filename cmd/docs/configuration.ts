/** The tables of docs/reference/configuration.md: what each variable means, its default, and which programs read it. */
import { MINIMUM_NATS_VERSION } from '../../internal/embedded/nats-binary.ts'
import { FIRST_SHARDS } from '../cluster/places.ts'
import {
  type Config,
  defaultProcesses,
  defaultShards,
  LOCAL_DESTINATIONS,
  type ProcessRole,
  readConfig,
  requiredFor,
} from '../config/config.ts'
import type { Setting } from '../config/setting.ts'
import { SETTINGS } from '../config/settings.ts'
import { code, table } from './table.ts'

type Key = keyof typeof SETTINGS
type Command = 'account' | 'shards' | 'repair' | 'payments' | 'export'

export interface Variable {
  readonly meaning: string
  /** What holds without it, where the configuration has no value that says so. */
  readonly unset?: string
  readonly readers: readonly ProcessRole[]
  readonly commands?: readonly Command[]
}

const NODES = ['penstock', 'cluster', 'ingress', 'admin', 'actor'] as const
const ADMINS = ['penstock', 'cluster', 'admin'] as const
const LISTENERS = ['penstock', 'cluster', 'ingress', 'admin'] as const
const SERVERS = ['penstock', 'ingress', 'admin', 'actor'] as const

export const variables: Readonly<Record<Key, Variable>> = {
  host: {
    meaning: 'Address that the HTTP listener and the ops port bind to.',
    readers: [...NODES, 'operator'],
  },
  port: {
    meaning: 'Port of the HTTP listener. 0: any free one, printed at the start.',
    readers: LISTENERS,
  },
  opsPort: {
    meaning:
      'Port of `/live`, `/ready`, `/metrics` (Prometheus) and, where shards run, `/shards`. 0: any free one.',
    readers: [...NODES, 'operator'],
  },
  dataDir: {
    meaning:
      'Folder with the data of the embedded servers and the generated secrets. One process uses it at a time.',
    readers: ADMINS,
    commands: ['account', 'shards', 'repair', 'export'],
  },
  natsUrls: {
    meaning: `The broker: NATS with JetStream, ${MINIMUM_NATS_VERSION} or newer.`,
    unset: 'embedded',
    readers: SERVERS,
    commands: ['shards', 'repair'],
  },
  natsCredsFile: {
    meaning: 'Path of a credentials file for the broker. It needs `PENSTOCK_NATS_URL`.',
    unset: 'none',
    readers: SERVERS,
    commands: ['shards', 'repair'],
  },
  natsServerBin: {
    meaning: `Path of the nats-server for the embedded broker, ${MINIMUM_NATS_VERSION} or newer.`,
    unset: 'one on `PATH`, else the packaged one',
    readers: ['penstock', 'cluster'],
    commands: ['repair'],
  },
  databaseUrl: {
    meaning: 'The database: Postgres 15 or newer.',
    unset: 'embedded, Postgres 18',
    readers: [...SERVERS, 'migrate'],
    commands: ['account', 'repair', 'export'],
  },
  shards: {
    meaning:
      'Count of shards, fixed at the first start of the installation. A node with another count does not start.',
    unset: `half the cores, ${defaultShards(1)} to ${defaultShards(1024)}; \`npm run cluster\`: ${FIRST_SHARDS}`,
    readers: NODES,
  },
  replicas: {
    meaning: 'Copies of each log at the broker, fixed at the first start. Use 3 in a cluster.',
    readers: NODES,
    commands: ['shards', 'repair'],
  },
  subjects: {
    meaning: 'Subjects of the inboxes. `shard`: one a shard, for many millions of groups.',
    readers: ['penstock', 'cluster', 'ingress'],
  },
  processes: {
    meaning:
      'Processes of `npm start`. Half of them, the first included, take requests on one port; the others run the shards.',
    unset: `half the cores, ${defaultProcesses(1)} to ${defaultProcesses(1024)}`,
    readers: ['penstock'],
  },
  catalogFile: {
    meaning:
      'Path of a JSON file with plans and credit packs. Every node checks it; admins write it to the database.',
    unset: 'the packaged plans and packs',
    readers: NODES,
  },
  sync: {
    meaning:
      'When the broker writes to disk: at each message, or at an interval, whose messages a power cut takes. The embedded broker is set to it. Of your own broker it has to be the `sync_interval`: a log is cut only so long after what allows it was acknowledged.',
    unset: '`always` for the embedded broker, `2m` for your own',
    readers: ['penstock', 'cluster', 'actor'],
    commands: ['repair'],
  },
  ownerKeys: {
    meaning: 'Owner keys by customer. Each start creates those that are missing, and their customers.',
    unset: 'customer `local` with a generated key, on the local instance',
    readers: ADMINS,
  },
  secretKeys: {
    meaning: 'Keys that encrypt secrets in the database. The first encrypts, all of them decrypt.',
    unset: 'generated in the data folder, on the local instance',
    readers: NODES,
    commands: ['export'],
  },
  stripeKey: {
    meaning: 'Secret or restricted key of Stripe. Plans and packs are sold there.',
    unset: 'no payments by Stripe',
    readers: ADMINS,
    commands: ['payments'],
  },
  stripeWebhookSecrets: {
    meaning:
      'Signing secrets of the webhook endpoint at Stripe, one, or two while they change. It needs `PENSTOCK_STRIPE_KEY`.',
    unset: 'Stripe cannot tell anything; the hourly sweep asks',
    readers: ADMINS,
    commands: ['payments'],
  },
  stripeReturnUrl: {
    meaning: 'Page that checkouts and the portal lead back to. `PENSTOCK_STRIPE_KEY` needs it.',
    unset: 'none',
    readers: ADMINS,
    commands: ['payments'],
  },
  stripeOrigin: {
    meaning: 'Another address of the API of Stripe, for tests.',
    unset: 'that of Stripe',
    readers: ADMINS,
    commands: ['payments'],
  },
  local: {
    meaning:
      'The local instance: `POST /v1/admin/credits/add`, loopback destinations, the receiver, plain `http` identity providers.',
    unset: '`true` for `npm start` and `npm run cluster` on a loopback address, otherwise `false`',
    readers: ['penstock', 'cluster', 'admin', 'actor'],
  },
  allowDestinations: {
    meaning: 'Address blocks that deliveries may reach beside public addresses.',
    unset: `${code(...LOCAL_DESTINATIONS)} on the local instance, otherwise none`,
    readers: ['penstock', 'cluster', 'admin', 'actor'],
  },
  destinationPorts: {
    meaning:
      'Ports that deliveries may reach, such as `443,8443`. A `delivery.url` with another port is refused, and a delivery to it fails.',
    unset: 'all',
    readers: ['penstock', 'cluster', 'admin', 'actor'],
  },
  dnsServers: {
    meaning:
      'Name servers for the names of destinations. The hosts file and the search list of `/etc/resolv.conf` hold all the same.',
    unset: 'those of `/etc/resolv.conf`',
    readers: ['penstock', 'cluster', 'admin', 'actor'],
  },
  initialCredits: { meaning: 'Credits of a new customer.', readers: ADMINS, commands: ['account'] },
  oidcIssuer: {
    meaning: 'Issuer of ID tokens. Outside the local instance it must be https.',
    unset: 'ID tokens are off',
    readers: ADMINS,
  },
  oidcAudience: {
    meaning: 'The `aud` of ID tokens for this service. Set it and the issuer, or neither.',
    unset: 'ID tokens are off',
    readers: ADMINS,
  },
  oidcJwksUrl: {
    meaning: 'Address of the public keys of the identity provider.',
    unset: 'found by discovery',
    readers: ADMINS,
  },
  maxBodyBytes: {
    meaning:
      "Largest body of a webhook, bytes. At most the broker's `max_payload` minus 16 KiB. That must be 540,672 bytes in any case. A node checks both at its start.",
    readers: NODES,
  },
  maxBodiesBytes: {
    meaning:
      'Bytes of the request bodies that a process holds at once, from their arrival to their answer. One customer may hold half of it. A request beyond it is answered 503 with `Retry-After: 1`. At least `PENSTOCK_MAX_BODY_BYTES`.',
    readers: LISTENERS,
  },
  maxConnections: {
    meaning:
      'Connections that a process serves at once. One more takes the place of the one that has idled longest, for a second at least. Where there is none, the next tenth more are answered 503 with `Retry-After: 1`, any others are closed without an answer.',
    readers: LISTENERS,
  },
  keyRequestsPerSecond: {
    meaning:
      'Management requests a second of one API key, in a process, and of one account with ID tokens. Twice as many may come at once, and all credentials of an account together may send twice as many. 0: any. Beyond it they are answered 429.',
    readers: ADMINS,
  },
  testsPerMinute: {
    meaning:
      'Test deliveries a minute of one buffer, in a process. Five may come at once. 0: any. Beyond it they are answered 429.',
    readers: ADMINS,
  },
  signUpsPerMinute: {
    meaning:
      'Customers a minute that first requests with ID tokens create, in a process. 0: any. Beyond it such a request is answered 429.',
    readers: ADMINS,
  },
  maxCustomers: {
    meaning: 'Customers that one customer may create. 0: any number. Beyond it a creation is answered 409.',
    readers: ADMINS,
  },
  maxProjects: {
    meaning:
      'Projects of one customer. It may use ten times as many ids. 0: any number. Beyond it a creation is answered 409.',
    readers: ADMINS,
  },
  maxBuffers: {
    meaning:
      'Buffers of one customer, not counting deleted ones. It may use ten times as many ids. 0: any number. Beyond it a creation is answered 409.',
    readers: ADMINS,
  },
  dlqRetentionDays: {
    meaning: 'Dead letters that are older are removed, days.',
    unset: 'dead letters stay',
    readers: ADMINS,
  },
  dlqQuota: {
    meaning: 'So many dead letters of a customer stay, the newest.',
    unset: 'dead letters stay',
    readers: ADMINS,
  },
  auditDays: {
    meaning: 'Records of the audit that are older are removed, days.',
    readers: ADMINS,
  },
  adminUrl: {
    meaning: 'Base address of the management API for the operator.',
    unset: 'required by the operator',
    readers: ['operator'],
  },
  adminCaFile: {
    meaning: 'PEM file of the authorities that the operator trusts for it.',
    unset: "the machine's authorities",
    readers: ['operator'],
  },
  watchNamespaces: {
    meaning: 'Namespaces whose Buffers the operator reconciles.',
    unset: 'all',
    readers: ['operator'],
  },
  leaseNamespace: {
    meaning: 'Namespace of the Lease by which operators elect their leader.',
    unset: "the operator's own",
    readers: ['operator'],
  },
  leaseName: { meaning: 'Name of that Lease.', readers: ['operator'] },
  verifySeconds: {
    meaning: 'Seconds between comparisons of a buffer with its resource when neither changed.',
    readers: ['operator'],
  },
  logLevel: {
    meaning: 'Least level of the log: JSON lines on standard output, readable ones on a terminal.',
    readers: [...NODES, 'operator'],
  },
}

export const roles: readonly ProcessRole[] = [...NODES, 'operator', 'migrate']

const PROGRAMS: Record<ProcessRole, string> = {
  penstock: '`npm start`',
  cluster: '`npm run cluster`',
  ingress: 'ingress',
  admin: 'admin',
  actor: 'actor',
  operator: 'operator',
  migrate: 'migrate',
}

export function variableTable(): string {
  return table(
    ['variable', 'default', 'meaning'],
    settings().map(([key, { name, accepts }]) => [
      code(name),
      defaultOf(key),
      accepts === 'any text' ? variables[key].meaning : `${variables[key].meaning} Accepts ${accepts}.`,
    ]),
  )
}

export function readerTable(): string {
  return table(
    ['variable', ...roles.map((role) => PROGRAMS[role]), 'commands'],
    settings().map(([key, { name }]) => [
      code(name),
      ...roles.map((role) => reading(key, role)),
      (variables[key].commands ?? []).map((command) => code(command)).join(', '),
    ]),
  )
}

function reading(key: Key, role: ProcessRole): string {
  if (requiredFor(role, bringsServers(role)).includes(key)) return 'required'
  return variables[key].readers.includes(role) ? 'yes' : ''
}

function bringsServers(role: ProcessRole): boolean {
  return role === 'penstock' || role === 'cluster'
}

function settings(): [Key, Setting<unknown>][] {
  return Object.entries(SETTINGS) as [Key, Setting<unknown>][]
}

/** What holds in each kind of program when the variable is not set. */
function defaultOf(key: Key): string {
  const start = configured(readConfig({}, 'penstock'), key)
  const cluster = configured(readConfig({}, 'cluster'), key)
  const node = configured(readConfig(LEAST, 'ingress'), key)
  const { unset } = variables[key]
  if (unset !== undefined) return unset
  if (start === undefined || node === undefined) throw new Error(`the default of ${key} is not described`)
  if (start !== node) return `${code(start)} on the local instance, otherwise ${code(node)}`
  return start === cluster ? code(start) : `${code(start)}; \`npm run cluster\`: ${code(cluster!)}`
}

/** What a node of a cluster cannot start without. */
export const LEAST = {
  PENSTOCK_NATS_URL: 'nats://nats:4222',
  PENSTOCK_DATABASE_URL: 'postgres://db/penstock',
  PENSTOCK_SECRET_KEY: Buffer.alloc(32).toString('base64'),
}

function configured({ operator, ...config }: Config, key: Key): string | number | undefined {
  const value = ({ ...config, ...operator } as Record<string, unknown>)[key]
  return typeof value === 'string' || typeof value === 'number' ? value : undefined
}
