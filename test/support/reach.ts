/** Which test files need nothing but this process: their imports, and those of what they import, start no program. */
import { readSources, type Source } from '../architecture/sources.ts'

/** What starts servers, services and other programs. */
const PROGRAMS = new Set([
  'node:child_process',
  'node:cluster',
  'node:worker_threads',
  'test/kube/kube.ts',
  'test/support/command.ts',
  'test/support/servers.ts',
  'test/support/service.ts',
])
const FOLDERS = ['bench', 'cmd', 'internal', 'operator', 'packages/*/src', 'test']

/** Paths from `root` of all such `*.test.ts`, in order. */
export function testsWithoutPrograms(root: string): string[] {
  const sources = new Map(readSources(root, FOLDERS).map((source) => [source.path, source]))
  return [...sources.keys()].filter(
    (path) => /^test\/.*\.test\.ts$/.test(path) && !reachesProgram(path, sources, new Set()),
  )
}

function reachesProgram(path: string, sources: ReadonlyMap<string, Source>, seen: Set<string>): boolean {
  if (PROGRAMS.has(path)) return true
  if (seen.has(path)) return false
  seen.add(path)
  return (sources.get(path)?.imports ?? []).some((target) => reachesProgram(target, sources, seen))
}
