/** Loopback ports of the embedded servers: free when chosen, and kept, so that a restart finds the same address. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'

/** A TCP port of 127.0.0.1 that nobody listens on right now. */
export async function freePort(): Promise<number> {
  const port = await tryListen(0)
  if (port === undefined) throw new Error('no free port on 127.0.0.1')
  return port
}

/** The port stored in `file` when it is still free, else a new one, which is stored. */
export async function keptPort(file: string): Promise<number> {
  const stored = readPort(file)
  if (stored !== undefined && (await tryListen(stored)) !== undefined) return stored
  return newPort(file)
}

/** A free port, stored in `file`. */
export async function newPort(file: string): Promise<number> {
  const port = await freePort()
  writeFileSync(file, `${port}\n`, { mode: 0o600 })
  return port
}

function readPort(file: string): number | undefined {
  try {
    const port = Number(readFileSync(file, 'utf8'))
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
  } catch {
    return undefined
  }
}

function tryListen(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(undefined))
    probe.listen(port, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' ? address?.port : undefined))
    })
  })
}
