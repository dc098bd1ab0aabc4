/** Loopback ports of the embedded servers: free when chosen, and kept, so that a restart finds the same address. */
import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'

import type { EmbeddedLog } from './ports.ts'

/**
 * Below 32,768, where the ports of outgoing connections begin (Linux; elsewhere higher): one of those could have taken the
 * port when a server that stopped starts again.
 */
const LOWEST = 15_000
const HIGHEST = 32_767
const TRIES = 50

/** One after the other from a random one: a port that was given and is not listened on yet is not given again. */
let next = randomInt(LOWEST, HIGHEST + 1)

/** A TCP port of 127.0.0.1 that nobody listens on right now, and that no outgoing connection will take. */
export async function freePort(): Promise<number> {
  for (let left = TRIES; left > 0; left--) {
    const chosen = next
    next = chosen === HIGHEST ? LOWEST : chosen + 1
    const port = await tryListen(chosen)
    if (port !== undefined) return port
  }
  throw new Error(`no free port on 127.0.0.1 from ${LOWEST} to ${HIGHEST}: tried ${TRIES}`)
}

/** The port stored in `file` when it is still free, else a new one. */
export async function keptPort(file: string, log: Pick<EmbeddedLog, 'warn'>): Promise<number> {
  const stored = readPort(file)
  if (stored !== undefined && (await tryListen(stored)) !== undefined) return stored
  return newPort(file, log)
}

/** A free port, stored in `file`. Whoever noted the one that stood there is told. */
export async function newPort(file: string, log: Pick<EmbeddedLog, 'warn'>): Promise<number> {
  const taken = readPort(file)
  const port = await freePort()
  writeFileSync(file, `${port}\n`, { mode: 0o600 })
  if (taken !== undefined) log.warn({ taken, port }, 'the port of the last run is taken, another one is used')
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
