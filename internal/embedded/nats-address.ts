/** Where the embedded NATS of a data folder listens, for a command beside the process that runs it. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** User of the service's account. */
const USER = 'penstock'

/** The URL of the server whose folder is `dir`; undefined when none was ever started there. */
export function natsAddressIn(dir: string): string | undefined {
  const [port, password] = [join(dir, 'port'), join(dir, 'password')]
  if (!existsSync(port) || !existsSync(password)) return undefined
  const text = (file: string) => readFileSync(file, 'utf8').trim()
  return `nats://${USER}:${text(password)}@127.0.0.1:${text(port)}`
}
