/**
 * Several embedded NATS servers on this machine as one JetStream cluster: what runs in zones elsewhere, to be
 * tried and broken here. Each has a folder, a store and a name of its own; one password lets in all of them.
 */
import { join } from 'node:path'

import { prepareFolder } from './data-folder.ts'
import { lostThePort, NATS_STOPPING, type NatsServer, natsPassword, startNats } from './nats-server.ts'
import { keptPort, newPort } from './port.ts'
import type { EmbeddedLog } from './ports.ts'
import { stopOrphans } from './server-process.ts'
import { NATS, userOf, wordsAs } from './server-user.ts'

/** Streams of a cluster are sized by what one server may store; the same at every start, as JetStream wants it. */
const MAX_STORE_BYTES = 8 * 1024 ** 3

export interface NatsClusterOptions {
  /** Its servers have the folders `nats-1`, `nats-2` … in it. */
  dir: string
  size: number
  binary: string
  /** See NatsServerOptions. */
  sync: string
  log: EmbeddedLog
  signal?: AbortSignal | undefined
}

export interface NatsMember {
  /** `nats-<n>` */
  readonly name: string
  readonly server: NatsServer
  /** What starts it again, as words of a command line. */
  readonly command: readonly string[]
}

export interface NatsCluster {
  readonly members: readonly NatsMember[]
  /** Of all members; credentials stand in each. */
  readonly urls: string[]
  kill(signal: NodeJS.Signals): void
  /** Also ends servers that somebody started again by hand. Rejects with an AggregateError of what failed. */
  stop(): Promise<void>
}

/** Resolves when all of them answer. Rejects with EmbeddedStartError, leaving none behind. */
export async function startNatsCluster(options: NatsClusterOptions): Promise<NatsCluster> {
  const names = Array.from({ length: options.size }, (_, index) => `nats-${index + 1}`)
  const dirs = names.map((name) => prepareFolder(join(options.dir, name)))
  const starting = async (choose: (file: string) => Promise<number>) => {
    const ports = []
    for (const dir of dirs) ports.push(await choose(join(dir, 'cluster-port')))
    return startAll(options, names, dirs, ports)
  }
  const servers = await starting((file) => keptPort(file, options.log)).catch((error: unknown) => {
    // Of which of its ports, its message does not say: the client's was tried anew already.
    if (!lostThePort(error)) throw error
    return starting((file) => newPort(file, options.log))
  })
  return natsCluster(
    options.binary,
    servers.map((server, index) => ({ name: names[index]!, dir: dirs[index]!, server })),
  )
}

/** All at once: alone none of them answers. When one fails, the others are given up. */
async function startAll(
  options: NatsClusterOptions,
  names: readonly string[],
  dirs: readonly string[],
  ports: readonly number[],
): Promise<NatsServer[]> {
  const { binary, sync, log } = options
  const password = natsPassword(dirs[0]!)
  const giveUp = new AbortController()
  const signal = AbortSignal.any([giveUp.signal, ...(options.signal ? [options.signal] : [])])
  const errors: unknown[] = []
  const starts = dirs.map((dir, index) =>
    startNats({
      dir,
      binary,
      sync,
      log,
      password,
      signal,
      maxStoreBytes: MAX_STORE_BYTES,
      name: names[index]!,
      cluster: { port: ports[index]!, ports },
    }).catch((error: unknown) => {
      errors.push(error)
      giveUp.abort()
      return undefined
    }),
  )
  const servers = (await Promise.all(starts)).filter((server) => server !== undefined)
  if (errors.length === 0) return servers
  await Promise.all(servers.map((server) => server.stop()))
  throw errors[0]
}

function natsCluster(
  binary: string,
  started: { name: string; dir: string; server: NatsServer }[],
): NatsCluster {
  const config = (dir: string) => join(dir, 'nats.conf')
  const user = userOf(NATS)
  return {
    members: started.map(({ name, dir, server }) => ({
      name,
      server,
      command: wordsAs(user, binary, ['-c', config(dir)]),
    })),
    urls: started.map(({ server }) => server.url),
    kill(signal) {
      for (const { server } of started) server.kill(signal)
    },
    async stop() {
      const results = await Promise.allSettled(
        started.map(async ({ dir, server }) => {
          await server.stop()
          await stopOrphans(`-c ${config(dir)}`, NATS_STOPPING)
        }),
      )
      const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
      if (errors.length > 0) throw new AggregateError(errors, 'NATS servers did not stop')
    },
  }
}
