/** Packages of peers, which are no dependencies of the project and so have no types here. */
import { createRequire } from 'node:module'
import { join } from 'node:path'

/** Exports of a package below the folder PEER_MODULES. */
export function packageOf<Exports>(name: string): Exports {
  return createRequire(join(process.env.PEER_MODULES ?? '', 'package.json'))(name) as Exports
}
