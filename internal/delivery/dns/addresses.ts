/** Addresses of a name in the order in which a socket tries them. */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

export interface ResolvedAddress {
  address: string
  /** 4 or 6. */
  family: number
}

/** One family first, each in its own order. The socket tries the others when the first do not answer soon. */
export function inOrder(addresses: readonly string[], first: 4 | 6): ResolvedAddress[] {
  const resolved = addresses.map((address) => ({ address, family: isIP(address) }))
  return [
    ...resolved.filter(({ family }) => family === first),
    ...resolved.filter(({ family }) => family !== first),
  ]
}

/** IPv6 where this machine has a public IPv6 address, which is what RFC 6724 comes to. Takes up to a millisecond. */
export function preferredFamily(): 4 | 6 {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return own.some(({ internal, address }) => !internal && /^[23]/.test(address) && isIP(address) === 6)
    ? 6
    : 4
}
