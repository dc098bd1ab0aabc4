/** What a cluster of pods stands on: three NATS servers and a Postgres, and the values that name them. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Values } from '../chart/helm.ts'
import { type Place, SERVICE_ADDRESSES } from './place.ts'

/** The node is as large as this machine, which may be small. */
const resources = { requests: { cpu: '20m', memory: '64Mi' } }
export const storeValues: Values = {
  nats: {
    url: 'nats://penstock:$(NATS_PASSWORD)@nats:4222',
    passwordSecret: { name: 'stores', key: 'nats-password' },
  },
  database: {
    url: 'postgres://postgres:$(DATABASE_PASSWORD)@postgres/postgres',
    passwordSecret: { name: 'stores', key: 'postgres-password' },
  },
  encryptionKeySecret: { name: 'keys' },
  ownerKeysSecret: { name: 'keys' },
  config: { shards: 4, allowDestinations: [SERVICE_ADDRESSES], initialCredits: 100_000 },
  ingress: { resources },
  admin: { resources },
  actor: { resources },
  operator: { resources },
}

/** `key`: the owner key of the customer `acme`. */
export async function startStores(place: Place, key: string): Promise<void> {
  const password = () => randomBytes(12).toString('hex')
  const secret = (name: string, pairs: Record<string, string>) =>
    place.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: pairs })
  await secret('stores', { 'nats-password': password(), 'postgres-password': password() })
  await secret('keys', { 'secret-key': randomBytes(32).toString('base64'), 'owner-keys': `acme=${key}` })
  const file = (name: string) => join(import.meta.dirname, name)
  await place.kubectl('create', 'configmap', 'nats', `--from-file=${file('nats.conf')}`)
  await place.kubectl('apply', '-f', file('stores.yaml'))
  for (const name of ['nats', 'postgres'])
    await place.kubectl('rollout', 'status', `statefulset/${name}`, '--timeout=300s')
}
