/**
 * What resolv.conf(5) says of names that are not complete. c-ares, the resolver inside Node, asks for a name as it
 * stands; the names of Kubernetes (`receiver.shop`) need the search list.
 */
import { isIP } from 'node:net'

export interface ResolvConf {
  /** Addresses of the name servers, at least one. */
  readonly servers: readonly string[]
  /** Domains to try behind a name, without dots at their ends. */
  readonly search: readonly string[]
  /** A name with so many dots is first asked for as it stands. */
  readonly ndots: number
}

/** One name to ask the servers for. */
export interface Candidate {
  readonly name: string
  /** Nothing was put behind it. */
  readonly asItStands: boolean
}

/** As many as the system's resolver takes (MAXNS). */
const MOST_SERVERS = 3
const MOST_NDOTS = 15
const LOCAL_SERVER = '127.0.0.1'

/** `hostname`: of this machine; its domain is the search list of a file that has none. */
export function parseResolvConf(text: string, hostname: string): ResolvConf {
  const servers: string[] = []
  let search = [hostname.split('.').slice(1).join('.')]
  let ndots = 1
  for (const [keyword, ...values] of text.split('\n').map(wordsOf)) {
    if (keyword === 'nameserver') servers.push(...values.slice(0, 1).filter((value) => isIP(value) !== 0))
    else if (keyword === 'domain') search = values.slice(0, 1)
    else if (keyword === 'search') search = values
    else if (keyword === 'options') ndots = ndotsIn(values) ?? ndots
  }
  return {
    servers: servers.length > 0 ? servers.slice(0, MOST_SERVERS) : [LOCAL_SERVER],
    search: search.map(withoutDot).filter((domain) => domain !== ''),
    ndots,
  }
}

/** What to ask for until there is an answer. A dot at the end means: this name and no other. */
export function candidatesOf(name: string, { search, ndots }: ResolvConf): Candidate[] {
  const asItStands = { name: withoutDot(name), asItStands: true }
  if (name.endsWith('.')) return [asItStands]
  const completed = search.map((domain) => ({ name: `${name}.${domain}`, asItStands: false }))
  const dots = name.split('.').length - 1
  return dots >= ndots ? [asItStands, ...completed] : [...completed, asItStands]
}

function ndotsIn(options: readonly string[]): number | undefined {
  const values = options
    .map((option) => /^ndots:(\d+)$/.exec(option)?.[1])
    .filter((value) => value !== undefined)
  return values.length > 0 ? Math.min(MOST_NDOTS, Number(values.at(-1))) : undefined
}

function wordsOf(line: string): string[] {
  return line
    .replace(/[#;].*/, '')
    .trim()
    .split(/\s+/)
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name
}
