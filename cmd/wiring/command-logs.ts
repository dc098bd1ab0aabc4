/** The logs of an installation for a command beside it: nothing is created, no lease is taken. */
import { join } from 'node:path'
import { natsAddressIn } from '../../internal/embedded/nats-address.ts'
import { createBroker, type NatsBroker } from '../../internal/nats/broker.ts'
import { type Connection, connectBroker } from '../../internal/nats/connection.ts'
import { recordedShards } from '../../internal/nats/streams/streams.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { type Config, ConfigError } from '../config/config.ts'

export interface CommandLogs {
  readonly connection: Connection
  readonly broker: NatsBroker
  /** Of the first start. */
  readonly shards: number
  close(): Promise<void>
}

/** `urls`: default what the configuration, else the data folder names. Rejects with ConfigError or UnusableBrokerError, one line each. */
export async function openCommandLogs(
  config: Config,
  urls: string[] = addresses(config),
): Promise<CommandLogs> {
  const clock = systemClock()
  const address = {
    servers: urls,
    ...(config.natsCredsFile !== undefined && { credsFile: config.natsCredsFile }),
  }
  const report = { connection: () => {}, warning: (text: string) => process.stderr.write(`${text}\n`) }
  const connection = await connectBroker(address, config.replicas, report)
  const broker = createBroker(connection, { clock })
  const close = async () => {
    broker.close()
    await connection.close()
  }
  const shards = await recordedShards(connection, { clock, replicas: config.replicas })
  if (shards !== undefined) return { connection, broker, shards, close }
  await close()
  throw new ConfigError('the broker has no logs of an installation')
}

function addresses({ natsUrls, dataDir }: Config): string[] {
  if (natsUrls !== undefined) return natsUrls
  const embedded = natsAddressIn(join(dataDir, 'nats'))
  if (embedded !== undefined) return [embedded]
  throw new ConfigError(`PENSTOCK_NATS_URL: no broker in ${dataDir}; set it, or PENSTOCK_DATA_DIR`)
}
