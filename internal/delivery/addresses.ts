/**
 * Which addresses a delivery may reach (docs/architecture/protocol.md, "Destinations"). Default-deny: only global
 * unicast passes, and an address that carries an IPv4 address inside (mapped, NAT64, 6to4, ISATAP) is judged by what
 * it carries. `net.BlockList` is not used, for it misses NAT64, 6to4 and `::7f00:1`.
 *
 * Pure. The connector applies these rules to every address before it connects (`guard.ts`); what is here
 * for names is only shape.
 */
import { isIPv4, isIPv6 } from 'node:net'

/** A block of addresses: `prefix` bits of `address`, 4 or 16 bytes. */
export interface Cidr {
  readonly address: Uint8Array
  readonly prefix: number
}

/** 4 or 16 bytes; null when `text` is no address. A zone (`fe80::1%eth0`) is dropped. */
export function parseAddress(text: string): Uint8Array | null {
  if (isIPv4(text)) return parseIPv4(text)
  return isIPv6(text) ? parseIPv6(text) : null
}

/** `10.0.0.0/8`, or one address alone; bits behind the prefix are ignored. null when it is neither. */
export function parseCidr(text: string): Cidr | null {
  const [, literal = '', digits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? []
  const address = parseAddress(literal)
  if (!address) return null
  const prefix = digits === undefined ? address.length * 8 : Number(digits)
  return prefix <= address.length * 8 ? { address, prefix } : null
}

/** Whether a delivery may connect to `text`; what is no address may not. `allow` overrides every refusal. */
export function isPermitted(text: string, allow: readonly Cidr[]): boolean {
  const address = parseAddress(text)
  return address !== null && permits(address, allow)
}

/** What whoever runs the service can do about it. */
export const PERMITTING = 'and PENSTOCK_ALLOW_DESTINATIONS does not permit it'

/** Whether a delivery may connect to this port. `ports`: those that may be reached; undefined: all. */
export function isPermittedPort(port: number, ports: readonly number[] | undefined): boolean {
  return ports === undefined || ports.includes(port)
}

/**
 * Why `url` can never be delivered to, null when it can: a scheme other than http and https, a port that is not
 * permitted, or a literal address that is not permitted, in any spelling that `URL` accepts. Names pass: what they
 * resolve to counts when a connection is made (docs/architecture/protocol.md, "Destinations").
 */
export function checkDestination(
  url: string,
  allow: readonly Cidr[],
  ports?: readonly number[],
): string | null {
  const parsed = URL.parse(url)
  if (!parsed) return 'it is not an absolute URL'
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') return 'its scheme is not http or https'
  const port = portOf(parsed)
  if (!isPermittedPort(port, ports)) return portBlocked(port)
  const host = hostOf(parsed)
  const literal = isIPv4(host) || isIPv6(host)
  return literal && !isPermitted(host, allow) ? `${host} is not a public address, ${PERMITTING}` : null
}

/** What whoever runs the service can do about a port. */
export function portBlocked(port: number): string {
  return `port ${port} is not in PENSTOCK_DESTINATION_PORTS`
}

/** The port of a URL, or the one of its scheme, http or https. */
export function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

/** The host of a URL as the resolver wants it: IPv6 without its brackets. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
}

function parseIPv4(text: string): Uint8Array {
  return Uint8Array.from(text.split('.'), Number)
}

function parseIPv6(text: string): Uint8Array {
  const [head = '', tail] = withoutDots(text.split('%', 1)[0] ?? '').split('::')
  const before = groups(head)
  const after = tail === undefined ? [] : groups(tail)
  const zeros = new Array<number>(8 - before.length - after.length).fill(0)
  return Uint8Array.from([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 255]))
}

/** `::ffff:1.2.3.4` → `::ffff:102:304`. */
function withoutDots(text: string): string {
  const at = text.lastIndexOf(':') + 1
  const last = text.slice(at)
  if (!last.includes('.')) return text
  const [a = 0, b = 0, c = 0, d = 0] = parseIPv4(last)
  return `${text.slice(0, at)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
}

function block(text: string): Cidr {
  const cidr = parseCidr(text)
  if (!cidr) throw new Error(`not a block of addresses: ${text}`)
  return cidr
}

const refusedIPv4: readonly Cidr[] = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT, and some clouds' metadata
  '127.0.0.0/8', // loopback
  '168.63.129.16', // looks public; the host agent of every Azure machine
  '169.254.0.0/16', // link-local, most clouds' metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays, deprecated
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
].map(block)

/** All else is refused: loopback, IPv4-compatible, local NAT64, ULA, link-local, site-local, multicast … */
const globalIPv6 = block('2000::/3')

const refusedIPv6: readonly Cidr[] = [
  '2001::/23', // protocol assignments: Teredo, benchmarks, ORCHID; no destination lives here
  '2001:db8::/32', // documentation
  '3fff::/20', // documentation
].map(block)

/** Where an IPv4 address sits inside an IPv6 one: prefix and byte offset. */
const carriers: readonly { readonly in: Cidr; readonly at: number }[] = [
  { in: block('::ffff:0:0/96'), at: 12 }, // mapped: the same as the IPv4 address
  { in: block('64:ff9b::/96'), at: 12 }, // NAT64: what a name resolves to in an IPv6-only cluster
  { in: block('2002::/16'), at: 2 }, // 6to4
]

function permits(address: Uint8Array, allow: readonly Cidr[]): boolean {
  if (isIn(address, allow)) return true
  if (address.length === 4) return !isIn(address, refusedIPv4)
  const carrier = carriers.find((candidate) => matches(address, candidate.in))
  if (carrier) return permits(address.subarray(carrier.at, carrier.at + 4), allow)
  if (!matches(address, globalIPv6) || isIn(address, refusedIPv6)) return false
  return !isIsatap(address) || permits(address.subarray(12), allow)
}

/** Interface identifier `0:5efe:<IPv4>` or `200:5efe:<IPv4>` (RFC 5214), behind any prefix. */
function isIsatap(address: Uint8Array): boolean {
  const [a = 0, b, c, d] = address.subarray(8)
  return (a & ~2) === 0 && b === 0 && c === 0x5e && d === 0xfe
}

function isIn(address: Uint8Array, cidrs: readonly Cidr[]): boolean {
  return cidrs.some((cidr) => matches(address, cidr))
}

function matches(address: Uint8Array, { address: base, prefix }: Cidr): boolean {
  if (address.length !== base.length) return false
  const whole = prefix >> 3
  for (let i = 0; i < whole; i++) if (address[i] !== base[i]) return false
  const rest = prefix & 7
  return rest === 0 || ((address[whole]! ^ base[whole]!) & (0xff00 >> rest) & 0xff) === 0
}
