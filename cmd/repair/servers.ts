/** The servers that a repair works on: those that are configured, else the embedded ones, started for it alone. */
import { startEmbedded } from '../../internal/embedded/servers.ts'
import type { Config } from '../config/config.ts'

export interface RepairServers {
  readonly natsUrls: string[]
  readonly databaseUrl: string
  /** The broker runs for this command only. */
  readonly own: boolean
  stop(): Promise<void>
}

/** Rejects with EmbeddedStartError while the service runs on the data folder. */
export async function openServers(config: Config): Promise<RepairServers> {
  const { natsUrls, databaseUrl, dataDir, sync, natsServerBin } = config
  if (natsUrls !== undefined && databaseUrl !== undefined)
    return { natsUrls, databaseUrl, own: false, stop: async () => {} }
  const say = (level: object, text?: string) => process.stderr.write(`${text ?? JSON.stringify(level)}\n`)
  const embedded = await startEmbedded({
    dataDir,
    sync,
    natsServerBin,
    databaseUrl,
    natsUrl: natsUrls?.join(','),
    log: { info: () => {}, warn: say, error: say },
    onLost: (error) => {
      process.stderr.write(`${error.message}\n`)
      process.exit(1)
    },
  })
  return {
    natsUrls: natsUrls ?? [embedded.natsUrl],
    databaseUrl: embedded.databaseUrl,
    own: natsUrls === undefined,
    stop: () => embedded.stop(),
  }
}
