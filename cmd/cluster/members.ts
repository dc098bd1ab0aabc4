/** Everything that the cluster runs, as its layout shows it. */
import type { ClusterNodes } from './nodes.ts'
import type { Servers } from './servers.ts'

export interface Member {
  readonly name: string
  readonly pid: number
  /** Where it takes what it is for; undefined: nowhere. Without credentials. */
  readonly address: string | undefined
  readonly opsUrl: string | undefined
  /** How it ends. */
  readonly exited: Promise<string>
  /** What starts it again, as words of a command line; undefined: only the whole cluster does. */
  readonly command: readonly string[] | undefined
}

/** In the order of their start. */
export function membersOf({ nats, postgres }: Servers, nodes: ClusterNodes): Member[] {
  const at = (port: number) => ({ address: `127.0.0.1:${port}`, opsUrl: undefined })
  return [
    ...nats.members.map(({ name, server: { pid, port, exited }, command }) => ({
      name,
      pid,
      exited,
      command,
      ...at(port),
    })),
    {
      name: 'postgres',
      pid: postgres.pid,
      exited: postgres.exited,
      command: undefined,
      ...at(postgres.port),
    },
    ...nodes.all.map(({ name, pid, url, opsUrl, exited, command }) => ({
      name,
      pid,
      address: url,
      opsUrl,
      exited,
      command,
    })),
  ]
}
