/** A Redis of a peer's own, with an append-only file. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { freePort } from '../../internal/embedded/port.ts'
import { eventually } from '../../test/support/eventually.ts'
import { tempFolder } from '../../test/support/temp-folders.ts'
import { ended, run } from '../systems.ts'

export interface Redis {
  readonly pid: number
  readonly port: number
  /** Empties it. */
  flush(): Promise<void>
  stop(): Promise<void>
}

/** `appendfsync` as Redis has it. */
export async function startRedis(appendfsync: 'everysec' | 'always'): Promise<Redis> {
  const port = await freePort()
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: tempFolder('redis'),
    save: '',
    logfile: '/dev/null',
    appendonly: 'yes',
    appendfsync,
    'maxmemory-policy': 'noeviction',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  const server = run(['redis-server', ...args], {})
  await eventually(async () => (await command(port, 'PING')) === '+PONG', { timeoutMs: 10_000 })
  return {
    pid: server.pid!,
    port,
    flush: async () => {
      const answer = await command(port, 'FLUSHALL')
      if (answer !== '+OK') throw new Error(`Redis answered ${answer}`)
    },
    stop: () => ended(server, 'SIGTERM'),
  }
}

/** The line that answers an inline command. */
async function command(port: number, text: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  try {
    socket.write(`${text}\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    return answer.toString().trim()
  } finally {
    socket.destroy()
  }
}
