/** The broker of a cluster under faults: one server, or a JetStream cluster of several, to stop and kill. */
import { join } from 'node:path'

import { startNatsCluster } from '../../internal/embedded/nats-cluster.ts'
import { natsBinary, ownNats } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

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
    ...{ brokers: [broker], natsUrls: [server.url], natsPort: server.port },
    stop: () => server.stop(),
  }
}

export async function clusterOfBrokers(size: number): Promise<Brokers> {
  const silent = { info: () => {}, warn: () => {}, error: () => {} }
  const started = await startNatsCluster({
    ...{ dir: join(tempFolder('nats-cluster'), 'nats'), size, binary: await natsBinary() },
    ...{ sync: '2m', log: silent },
  })
  const kill = () => started.kill('SIGKILL')
  process.once('exit', kill)
  return {
    brokers: started.members.map(({ name, server }) => ({
      name,
      get running() {
        return server.running
      },
      kill: (signal) => server.kill(signal),
      restart: () => server.restart(),
    })),
    ...{ natsUrls: started.urls, natsPort: undefined },
    stop: async () => {
      await started.stop()
      process.off('exit', kill)
    },
  }
}
