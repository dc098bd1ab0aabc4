/** Why a port cannot be listened on, in the words of whoever set it. */
import { ConfigError } from '../config/config.ts'

/** The variable to change, by the system's error code. */
const VARIABLES: Record<string, 'host' | 'port'> = {
  EADDRINUSE: 'port',
  EACCES: 'port',
  EADDRNOTAVAIL: 'host',
  ENOTFOUND: 'host',
}

/** What `listen` answers; ConfigError names the variable of the port, or that of the host. */
export async function listening<T>(portVariable: string, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen()
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    const concerned = VARIABLES[code]
    if (concerned === undefined) throw error
    throw new ConfigError(`${concerned === 'port' ? portVariable : 'PENSTOCK_HOST'}: ${message}`)
  }
}
