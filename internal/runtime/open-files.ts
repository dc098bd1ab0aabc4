import { readFileSync } from 'node:fs'

/** How many files and sockets this process may have open; infinite where the system does not say (only Linux does). */
export function openFileLimit(path = '/proc/self/limits'): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync(path, 'utf8')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
