import { isIP } from 'node:net'

/** Addresses by name in lower case, in the order of the file (hosts(5)). A line that begins with no address is passed over. */
export function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = wordsOf(line)
    if (isIP(address) === 0) continue
    for (const name of names.map((each) => each.toLowerCase())) {
      const known = hosts.get(name) ?? []
      if (!known.includes(address)) hosts.set(name, [...known, address])
    }
  }
  return hosts
}

function wordsOf(line: string): string[] {
  return line.replace(/#.*/, '').trim().split(/\s+/)
}
