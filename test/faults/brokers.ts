/** The broker of a cluster under faults: one server, or a JetStream cluster of several, to stop and kill. */
import { ownNats, ownNatsCluster } from '../support/servers.ts'

/** A NATS server of the trial's own. */
export interface Broker {
  readonly name: string
  readonly running: boolean
  kill(signal: NodeJS.Signals): void
  restart(): Promise<void>
}

export interface Brokers {
  readonly brokers: readonly Broker[]
  readonly natsUrls: readonly string[]
  readonly natsPort: number | undefined
  stop(): Promise<void>
}

export async function oneBroker(): Promise<Brokers> {
  const server = await ownNats({ sync: 'always' })
  const broker: Broker = {
    name: 'nats',
    get running() {
      return server.running
    },
    kill: (signal) => server.kill(signal),
    restart: () => server.restart(),
  }
  return {
    brokers: [broker],
    natsUrls: [server.url],
    natsPort: server.port,
    stop: () => server.stop(),
  }
}

export async function clusterOfBrokers(size: number): Promise<Brokers> {
  const started = await ownNatsCluster({ size })
  return {
    brokers: started.members.map(({ name, server }) => ({
      name,
      get running() {
        return server.running
      },
      kill: (signal) => server.kill(signal),
      restart: () => server.restart(),
    })),
    natsUrls: started.urls,
    natsPort: undefined,
    stop: () => started.stop(),
  }
}
