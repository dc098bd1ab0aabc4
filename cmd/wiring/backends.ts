/** What a program stands on before it has anything of its own: servers, the schema, the keys of its secrets. */
import type { SecretKey } from '../../internal/postgres/secrets.ts'
import { type Config, ConfigError } from '../config/config.ts'
import type { LogServers, Node } from './foundation.ts'

export interface Backends extends LogServers {
  readonly databaseUrl: string
  readonly secretKeys: SecretKey[]
  /** Runs of the program that are over for certain, whatever their leases say. */
  readonly overBoots: readonly string[]
}

/** Of a role of a cluster: everything has its place in the configuration. */
export async function backendsOfCluster({ config }: Node): Promise<Backends> {
  const { databaseUrl, natsUrls, secretKeys } = config
  return {
    databaseUrl: named(config, databaseUrl, 'PENSTOCK_DATABASE_URL'),
    natsUrls: named(config, natsUrls, 'PENSTOCK_NATS_URL'),
    secretKeys: named(config, secretKeys, 'PENSTOCK_SECRET_KEY'),
    overBoots: [],
  }
}

function named<T>({ role }: Config, value: T | undefined, name: string): T {
  if (value === undefined) throw new ConfigError(`${name}: is required for ${role}`)
  return value
}
