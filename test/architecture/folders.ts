/**
 * The rooms of the packages that are too large for one folder, bottom up: whatever stands in a list imports only what
 * stands before it. A file of the list stands at the root of its package. Root files that are in no list, such as ports,
 * are for every room.
 */
import type { Source } from './sources.ts'

export const FOLDERS_IN_ORDER: Readonly<Record<string, readonly string[]>> = {
  'internal/shard': [
    ...['journal', 'archive', 'held', 'batches', 'claim', 'housekeeping'],
    ...['parts.ts', 'log-watch.ts', 'claimed-logs.ts', 'figures.ts', 'release.ts', 'pausing.ts'],
    ...['assembly.ts', 'shard.ts'],
    ...['ownership', 'status', 'repair'],
  ],
  'internal/nats': ['streams', 'log', 'leases', 'broker.ts'],
}

/** One line a breach: who imports what. A folder that is no room of its package is one, too. */
export function breachesOfFolders(sources: readonly Source[]): string[] {
  return Object.entries(FOLDERS_IN_ORDER).flatMap(([home, rooms]) =>
    sources.flatMap(({ path, imports }) => {
      const from = roomOf(home, path)
      if (from === undefined) return []
      if (!rooms.includes(from)) return from.endsWith('.ts') ? [] : [`${path} is in no room of ${home}`]
      return imports
        .filter((target) => rooms.indexOf(roomOf(home, target) ?? '') > rooms.indexOf(from))
        .map((target) => `${path} imports ${target}: ${from} stands below ${roomOf(home, target)}`)
    }),
  )
}

/** The room, or the name of a file at the root of the package; undefined outside of it. */
function roomOf(home: string, path: string): string | undefined {
  return path.startsWith(`${home}/`) ? path.slice(home.length + 1).split('/')[0] : undefined
}
