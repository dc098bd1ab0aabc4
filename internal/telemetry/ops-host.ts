/**
 * Which requests the ops port answers with what it knows (docs/architecture/protocol.md, "Configuration"). It asks for no
 * credential. A page of anybody could read it through a browser that reaches it, by a name that the page's owner makes
 * resolve to it (DNS rebinding). A browser sends that name as Host.
 */
import { isIP } from 'node:net'
import { hostIn } from '../domain/host-header.ts'

/** Nobody can register a name below these: of a machine, of a network, and of services in Kubernetes. */
const PRIVATE = /\.(localhost|local|internal|svc)\.?$/

/**
 * Whether nobody else can make the name resolve to here: an address, a name without a dot, a private one, or the one that
 * the process listens on. `undefined`: there is no Host, and every browser sends one.
 */
export function isOpsHost(header: string | undefined, listening: string): boolean {
  if (header === undefined) return true
  const name = hostIn(header)
  if (isIP(name) !== 0 || name === listening.toLowerCase()) return true
  return /^[a-z0-9_-]+$/.test(name) || PRIVATE.test(name)
}
